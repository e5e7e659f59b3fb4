"""``/v1/scheduler/map``: a character for each host, against the list of hosts; pages; layouts that change."""

import asyncio
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from roost.scheduler.api.fleet_map import LEVEL_CHARACTERS, STATE_CHARACTERS
from scheduler.api.test_hosts import listed
from support.clouds import GPU, flat, report, tell, uuid_of
from support.mixed_clouds import HOSTS, mixed_cloud
from support.scheduling_api import SchedulingApi, error_of, scheduling

PATH = "/v1/scheduler/map"
STATES = ("up", "disabled", "down")


async def drawn(api: SchedulingApi, **query: object) -> dict[str, Any]:
    answer = await api.client.get(PATH, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def level(amounts: dict[str, int] | None, by: str, most: int | None) -> str:
    """The character of a host's level, by plain counting."""
    if amounts is None or not (amounts["capacity"] or amounts["used"]):
        return "-"
    part, whole = amounts["used"], amounts["capacity"]
    if by == "free":
        part, whole = amounts["capacity"] - amounts["used"], most or 1
    if part <= 0:
        return "0"
    return LEVEL_CHARACTERS[31 if part >= whole else min(1 + math.floor(part / whole * 30), 30)]


@pytest.mark.parametrize("by", ["used", "free"])
@pytest.mark.parametrize("name", ["VCPU", "MEMORY_MB", GPU, "CUSTOM_NOTHING"])
def test_each_host_has_the_character_of_its_amounts_and_state(tmp_path: Path, name: str, by: str) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, mixed_cloud()) as api:
            hosts = (await listed(api, limit=1000))["hosts"]
            found = await drawn(api, resource_class=name, by=by)
            amounts = [each["resources"].get(name) for each in hosts]
            free = [each["capacity"] - each["used"] for each in amounts if each is not None]
            assert found["most"] == (max(free, default=0) if by == "free" else None)
            assert (found["hosts"], found["next"]) == (HOSTS, None)
            assert name in found["resource_classes"] or name == "CUSTOM_NOTHING"
            places = sorted({(each["zone"], each["cell"]) for each in hosts})
            assert [(each["zone"], each["cell"]) for each in found["groups"]] == places
            for group in found["groups"]:
                there = [
                    each for each in hosts if (each["zone"], each["cell"]) == (group["zone"], group["cell"])
                ]
                expected = [level(each["resources"].get(name), by, found["most"]) for each in there]
                assert group["levels"] == "".join(expected)
                states = [STATES.index(each["state"]) for each in there]
                assert group["states"] == "".join(STATE_CHARACTERS[state] for state in states)
                assert group["hosts"] == len(there)
                assert [group[state] for state in STATES] == [states.count(number) for number in range(3)]
                sums: Counter[str] = Counter(dict.fromkeys(("capacity", "used", "reserved", "total"), 0))
                for each in there:
                    sums.update(each["resources"].get(name, {}))
                assert group["amounts"] == dict(sums)

    asyncio.run(main())


def test_a_zone_a_cell_and_a_label_choose_and_group(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, mixed_cloud()) as api:
            every = await drawn(api)
            for key in ("zone", "cell"):
                for value in {each[key] for each in every["groups"]}:
                    chosen = await drawn(api, **{key: value})
                    assert chosen["groups"] == [each for each in every["groups"] if each[key] == value]
                    assert chosen["hosts"] == sum(each["hosts"] for each in chosen["groups"])
            racks = await drawn(api, label="rack")
            labels = {each["label"] for each in racks["groups"]}
            assert {"", "r0", "r1", "r2"} < labels
            assert any(", " in each for each in labels), "no host is in two racks"
            assert racks["hosts"] == HOSTS
            assert (await drawn(api, zone="nowhere"))["groups"] == []

    asyncio.run(main())


def test_names_of_every_tenth_host_tell_where_a_host_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, mixed_cloud()) as api:
            hosts = (await listed(api, limit=1000))["hosts"]
            for limit in (9, 40):
                found: dict[tuple[str, str], list[str]] = {}
                marker: dict[str, str] = {}
                while True:
                    page = await drawn(api, names_every=10, limit=limit, **marker)
                    for group in page["groups"]:
                        found.setdefault((group["zone"], group["cell"]), []).extend(group["names"])
                    if page["next"] is None:
                        break
                    marker = {"marker": page["next"]}
                for (zone, cell), names in found.items():
                    there = [each["host"] for each in hosts if (each["zone"], each["cell"]) == (zone, cell)]
                    assert names == there[::10]

    asyncio.run(main())


@pytest.mark.parametrize("limit", [1, 7, 39, 40, 41])
def test_pages_add_up_to_the_whole(tmp_path: Path, limit: int) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, mixed_cloud()) as api:
            whole = await drawn(api, zone="az1")
            characters: dict[str, list[str]] = {each["cell"]: ["", ""] for each in whole["groups"]}
            marker: str | None = None
            pages = 0
            while True:
                page = await drawn(api, zone="az1", limit=limit, **({"marker": marker} if marker else {}))
                for each in page["groups"]:
                    characters[each["cell"]][0] += each["levels"]
                    characters[each["cell"]][1] += each["states"]
                pages += 1
                if (marker := page["next"]) is None:
                    break
            assert pages == math.ceil(whole["hosts"] / limit)
            assert characters == {each["cell"]: [each["levels"], each["states"]] for each in whole["groups"]}

    asyncio.run(main())


def test_a_page_of_a_fleet_that_has_changed_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            first = await drawn(api, limit=2)
            tell(api.service.scheduler.table, [report("host9", uuid_of(9))])
            gone = await api.client.get(PATH, params={"marker": first["next"], "limit": 2})
            assert gone.status_code == 410
            assert error_of(gone)["code"] == "scheduler.layout_changed"
            wrong = await api.client.get(PATH, params={"marker": "nonsense"})
            assert wrong.status_code == 400

    asyncio.run(main())


def test_without_a_ledger_there_are_states_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3), over_http=True) as api:
            found = await drawn(api)
            [group] = found["groups"]
            assert (group["levels"], group["amounts"], group["states"]) == (None, None, "...")
            refused = await api.client.get(PATH, params={"by": "free"})
            assert error_of(refused)["code"] == "scheduler.amounts_unknown"

    asyncio.run(main())
