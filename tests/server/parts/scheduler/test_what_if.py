"""What-if questions over HTTP: answered from a copy of the state, which they leave as it is."""

import asyncio
from pathlib import Path

from support.clouds import flat
from support.scheduling_api import FLAVOR, SPEC, scheduling

PATH = "/v1/scheduler/what-if"


def test_what_if_questions_touch_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            before = (await api.ledger.current()).version
            answer = await api.client.post(PATH, json={"request_spec": SPEC})
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert (found["fits"], found["on_hosts"], found["hosts"]) == (24, 3, 3)
            assert found["where"] == [{"instances": 8, "hosts": 3, "names": {"names": ["host[0-2]"]}}]
            assert found["binds"]["sentence"].startswith("none of 3 hosts has 1 VCPU free")

            ask = {"request_spec": SPEC, "drained": ["host0"], "added": [{"like": "host1", "number": 4}]}
            found = (await api.client.post(PATH, json=ask)).json()
            assert (found["fits"], found["hosts"]) == (48, 6)
            assert found["where"][0]["names"] == {"names": ["host1+[1-4]", "host[1-2]"]}

            found = (await api.client.post(PATH, json={"request_spec": SPEC, "limit": 5})).json()
            assert (found["fits"], found["limited"]) == (5, True)
            assert "binds" not in found

            fleet = await api.ledger.current()
            assert (fleet.version, len(fleet), len(api.service.scheduler.table)) == (before, 3, 3)
            assert api.held() == {}
            assert not len(api.service.scheduler.table.outstanding)

    asyncio.run(main())


def test_what_cannot_be_supposed_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(1)) as api:
            trait = {**SPEC, "flavor": {**FLAVOR, "extra_specs": {"trait:CUSTOM_NO": "required"}}}
            for body, reason in (
                ({"request_spec": SPEC, "drained": ["moon"]}, "host 'moon' is unknown"),
                ({"request_spec": SPEC, "added": [{"like": "moon"}]}, "host 'moon' is unknown"),
                ({"request_spec": trait}, "CUSTOM_NO"),
                ({"request_spec": SPEC, "limit": 10_001}, "limit"),
            ):
                answer = await api.client.post(PATH, json=body)
                assert answer.status_code == 400, answer.text
                assert reason in answer.json()["errors"][0]["detail"]

    asyncio.run(main())
