"""``/v1/scheduler/hosts``: the hosts that are listed, their order and amounts, against plain sorting."""

import asyncio
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from support.clouds import GPU, NOW, flat, uuid_of
from support.mixed_clouds import HOSTS, mixed_cloud
from support.scheduling_api import SchedulingApi, error_of, scheduling

PATH = "/v1/scheduler/hosts"
Row = dict[str, Any]


async def listed(api: SchedulingApi, **query: object) -> dict[str, Any]:
    answer = await api.client.get(PATH, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def plain(row: Row, query: Mapping[str, Any]) -> bool:
    """Whether a host meets the criteria of a query."""
    amounts = row["resources"].get(query.get("resource_class"), {})
    return (
        query.get("zone") in (None, row["zone"])
        and query.get("cell") in (None, row["cell"])
        and query.get("state") in (None, row["state"])
        and (query.get("search") or "").lower() in f"{row['host']} {row['nodename']}".lower()
        and ("resource_class" not in query or bool(amounts and (amounts["capacity"] or amounts["used"])))
    )


def rank(row: Row, query: Mapping[str, Any]) -> float:
    """The number by which a host is sorted, largest first."""
    classes = [query["resource_class"]] if "resource_class" in query else [*row["resources"]]
    amounts = [row["resources"][name] for name in classes if name in row["resources"]]
    match query.get("sort", "name"):
        case "used":
            return max((each["used"] / max(each["capacity"], 1) for each in amounts), default=0)
        case "free":
            return float(amounts[0]["capacity"] - amounts[0]["used"])
        case "state":
            return float(["up", "disabled", "down"].index(row["state"]))
    return 0.0


def test_every_query_gives_what_plain_filters_and_sorting_give(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, mixed_cloud()) as api:
            every = (await listed(api, limit=1000))["hosts"]
            assert [row["host"] for row in every] == sorted(row["host"] for row in every)
            assert len(every) == HOSTS
            criteria = [
                {},
                {"zone": "az1"},
                {"cell": "cell2"},
                {"state": "down"},
                {"state": "disabled", "cell": "cell1"},
                {"search": "HOST1"},
                {"search": "n1"},
                {"zone": "nowhere"},
                {"resource_class": GPU},
                {"resource_class": "VCPU", "state": "up"},
                {"resource_class": "CUSTOM_NOTHING"},
            ]
            for chosen, sort, (limit, offset) in itertools.product(
                criteria, ("name", "state", "used", "free"), ((1000, 0), (5, 0), (4, 3), (7, 38))
            ):
                query = {**chosen, "sort": sort}
                if sort == "free" and "resource_class" not in chosen:
                    continue
                page = await listed(api, **query, limit=limit, offset=offset)
                matching = [row for row in every if plain(row, query)]
                expected = sorted(matching, key=lambda row: -rank(row, query))
                assert page["hosts"] == expected[offset : offset + limit], query
                assert page["matching"] == len(matching)
                states = [row["state"] for row in matching]
                assert [page[state] for state in ("up", "disabled", "down")] == [
                    states.count(state) for state in ("up", "disabled", "down")
                ]
                assert page["hosts_known"] == HOSTS

    asyncio.run(main())


def test_a_host_has_the_amounts_of_its_whole_tree(tmp_path: Path) -> None:
    cloud = mixed_cloud()

    async def main() -> None:
        async with scheduling(tmp_path, cloud) as api:
            for row in (await listed(api, limit=1000))["hosts"]:
                tree = [each for each in cloud.providers if row["node"] in (each.uuid, each.parent)]
                for name in {name for each in tree for name in each.inventories}:
                    held = [each.inventories[name] for each in tree if name in each.inventories]
                    assert row["resources"][name] == {
                        "capacity": sum(each.capacity for each in held),
                        "used": sum(each.used.get(name, 0) for each in tree),
                        "reserved": sum(each.reserved for each in held),
                        "total": sum(each.total for each in held),
                    }
            assert (await listed(api, search="host07"))["hosts"][0]["resources"] == {}

    asyncio.run(main())


def test_states_are_those_of_reports_and_of_the_trait_in_placement(tmp_path: Path) -> None:
    cloud = mixed_cloud()

    async def main() -> None:
        async with scheduling(tmp_path, cloud) as api:
            found = {row["host"]: row["state"] for row in (await listed(api, limit=1000))["hosts"]}
            for each in cloud.reports:
                marked = int(each.host[-2:]) % 10 == 3
                expected = "up" if each.enabled and not marked else "disabled"
                assert found[each.host] == ("down" if each.last_seen < NOW - 60 else expected)

    asyncio.run(main())


def test_a_claim_counts_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            before = await listed(api, sort="used")
            assert (await api.select()).status_code == 200
            after = await listed(api, sort="used", limit=1)
            [row] = after["hosts"]
            assert (row["instances"], row["resources"]["VCPU"]["used"]) == (1, 1)
            assert after["version"] > before["version"]

    asyncio.run(main())


def test_without_a_ledger_names_and_states_are_known_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3), over_http=True) as api:
            page = await listed(api, sort="state", limit=2)
            assert [row["resources"] for row in page["hosts"]] == [{}, {}]
            assert (page["matching"], page["version"]) == (3, None)
            for query in ("sort=used", "resource_class=VCPU", "sort=free&resource_class=VCPU"):
                refused = await api.client.get(f"{PATH}?{query}")
                assert error_of(refused)["code"] == "scheduler.amounts_unknown"

    asyncio.run(main())


def test_free_amounts_of_different_classes_are_not_compared(tmp_path: Path) -> None:
    async def main() -> httpx.Response:
        async with scheduling(tmp_path, flat(1)) as api:
            return await api.client.get(f"{PATH}?sort=free")

    assert "needs a resource_class" in error_of(asyncio.run(main()))["detail"]


def test_hosts_are_for_administrators_and_services(tmp_path: Path) -> None:
    async def main() -> list[int]:
        member = {"x-auth-token": "user:project", "x-roles": "member"}
        async with scheduling(tmp_path, flat(1)) as api:
            paths = (PATH, "/v1/scheduler/map")
            return [(await api.client.get(path, headers=member)).status_code for path in paths]

    assert asyncio.run(main()) == [403, 403]


def test_a_host_that_is_gone_is_not_listed(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with scheduling(tmp_path, flat(3)) as api:
            await listed(api)
            api.service.scheduler.table.remove([uuid_of(1)])
            return [row["host"] for row in (await listed(api))["hosts"]]

    assert asyncio.run(main()) == ["host0", "host2"]
