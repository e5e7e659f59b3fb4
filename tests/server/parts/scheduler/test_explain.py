"""A request is explained over HTTP: whole for administrators, and without any claim."""

import asyncio
from pathlib import Path

from support.clouds import flat
from support.scheduling_api import FLAVOR, SPEC, scheduling


def test_requests_are_explained_and_claim_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            ask = {"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpus": 9}}}
            answer = await api.client.post("/v1/scheduler/explain", json=ask)
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert found["sentence"].startswith("none of 3 hosts has 9 VCPU free; the closest, host0,")
            assert found["relaxations"][0]["after"] == 8
            assert sum(stage["hosts"] for stage in found["stages"]) == found["hosts"] == 3
            answer = await api.client.post("/v1/scheduler/explain", json={"request_spec": SPEC})
            assert answer.json()["sentence"] == "it fits: 3 hosts may be used, and host0 is the best"
            assert len(answer.json()["weighed"]) == 3
            assert api.held() == {}

    asyncio.run(main())


def test_moves_are_not_looked_for_without_the_databases_of_cells(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            ask = {"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpus": 9}}, "moves": 3}
            answer = await api.client.post("/v1/scheduler/explain", json=ask)
            assert answer.status_code == 200, answer.text
            assert "move_search" not in answer.json()
            many = await api.client.post("/v1/scheduler/explain", json={**ask, "moves": 4})
            assert many.status_code == 400 and "3" in many.text, many.text

    asyncio.run(main())
