"""Plans of a maintenance at the scheduler: room from the ledger, hosts by its filters, server groups."""

import asyncio
from pathlib import Path
from typing import Any

from support.clouds import flat
from support.scheduling_api import FLAVOR, SPEC, scheduling

PATH = "/v1/scheduler/plan-maintenance"


def test_a_plan_is_made_of_the_ledger_and_the_filters(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(4)) as api:
            asked = {"request_spec": SPEC, "count": 6}
            placed = (await api.client.post("/v1/select_destinations", json=asked)).json()["destinations"]
            guests: list[dict[str, Any]] = [
                {
                    "uuid": each["instance"],
                    "node": each["selected"]["node"],
                    "claim": each["selected"]["allocations"],
                    "spec": 0,
                }
                for each in placed
            ]
            names = [f"host{number}" for number in range(4)]
            body = {"hosts": names, "guests": guests, "specs": [SPEC]}
            before = (await api.ledger.current()).version

            async def plan(**other: Any) -> dict[str, Any]:
                answer = await api.client.post(PATH, json={**body, **other})
                assert answer.status_code == 200, answer.text
                found: dict[str, Any] = answer.json()
                return found

            found = await plan()
            assert sorted(host for wave in found["waves"] for host in wave["hosts"]) == names
            assert not found["left_out"]
            assert len(found["waves"]) >= 2

            # The filters decide: with a trait that no host has, nothing may be anywhere else.
            trait = {**SPEC, "flavor": {**FLAVOR, "extra_specs": {"trait:CUSTOM_NO": "required"}}}
            found = await plan(specs=[trait])
            assert {each["host"] for each in found["left_out"]} == {
                each["selected"]["host"] for each in placed
            }

            # What others hold is in use: these guests are not in the plan, so nothing is moved.
            found = await plan(guests=[])
            assert sum(len(wave["moves"]) for wave in found["waves"]) == 0

            group = {"uuid": "5c1d8e6a-0000-4000-8000-0000000000aa", "policy": "affinity"}
            found = await plan(specs=[{**SPEC, "group": group}])
            assert "members of an affinity group" in found["left_out"][0]["reason"]

            answer = await api.client.post(PATH, json={**body, "specs": []})
            assert answer.status_code == 400 and "not in specs" in answer.text
            answer = await api.client.post(PATH, json={**body, "hosts": ["moon"]})
            assert answer.status_code == 400 and "no host 'moon' is known" in answer.text
            assert (await api.ledger.current()).version == before

    asyncio.run(main())
