"""The list of hosts: searched, sorted and paged by the server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from roost.model.record import BUILT
from roost.records import Retention
from roost.records.backend import open_sql_records
from roost.records.jsonl import JsonLinesRecords
from roost.scheduler.nodes.host_states import STATES
from support.clouds import NOW, Cloud, Provider, flat, report, uuid_of
from support.fleet_pages import FleetPages, failed, fleet_pages
from support.mixed_clouds import HOSTS, mixed_cloud


def seen(folder: Path, cloud: Cloud, *paths: str, **more: Any) -> list[Any]:
    """The views at some addresses."""

    async def run() -> list[Any]:
        async with fleet_pages(folder, cloud, **more) as pages:
            return [await pages.view(path) for path in paths]

    return asyncio.run(run())


def test_a_page_has_each_host_with_its_place_state_and_amounts(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            view = await pages.view("/ui/hosts")
            now = await pages.now()
            assert view["matching"] == view["all_hosts"] == len(view["hosts"]) == HOSTS
            assert [each["name"] for each in view["hosts"]] == sorted(now.table.hosts)
            assert sum(view["states"].values()) == HOSTS
            for each in view["hosts"]:
                index = now.table.index_of_node(each["node"])
                assert index is not None
                position = now.positions[index]
                group = now.group_at(position)
                assert each["state"] == STATES[now.states[position]]
                assert (each["zone"], each["rack"], each["cell"]) == (group.zone, group.label, group.cell)
                assert each["nodename"] == now.table.nodenames[index]
                assert each["placed"] == (each["node"] != uuid_of(7)) == bool(each["amounts"])
            page = await pages.page("/ui/hosts")
            assert "not in placement" in page

    asyncio.run(main())


@pytest.mark.parametrize("sort", ["used", "free", "state", "failures", "name"])
def test_the_server_sorts_and_pages_add_up(tmp_path: Path, sort: str) -> None:
    cloud = flat(120)
    for number, provider in enumerate(cloud.providers):
        if number % 7:
            provider.used = {"VCPU": number % 7}

    async def main() -> None:
        async with fleet_pages(tmp_path, cloud) as pages:
            found = []
            for page in (1, 2, 3):
                view = await pages.view(f"/ui/hosts?class=VCPU&sort={sort}&page={page}")
                assert view["page"] == page
                found += view["hosts"]
            assert len({each["node"] for each in found}) == len(found) == 120
            used = [each["amounts"]["VCPU"]["used"] for each in found]
            names = [each["name"] for each in found]
            if sort == "used":
                assert used == sorted(used, reverse=True)
            elif sort == "free":
                assert used == sorted(used)
            else:
                assert names == sorted(names)
            assert (await pages.view("/ui/hosts?page=99"))["page"] == 3

    asyncio.run(main())


def test_a_search_is_by_a_part_of_either_name_and_an_exact_name_leads_to_the_host(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            found = await names(pages, "search=HOST0")
            assert found == sorted(f"{'Host' if n % 9 == 0 else 'host'}{n:02}" for n in range(10))
            assert await names(pages, "search=nothing") == []
            for wanted in ("host07", "HOST07", "n7", uuid_of(7), uuid_of(7).upper(), " host07 "):
                answer = await pages.get(f"/ui/hosts?search={wanted.replace(' ', '+')}")
                assert answer.status_code == 303, wanted
                assert answer.headers["location"] == f"/ui/hosts/{uuid_of(7)}"
            twin = await pages.get("/ui/hosts?search=host07&format=json")
            assert twin.status_code == 200 and twin.json()["exact"] == f"/ui/hosts/{uuid_of(7)}"

    asyncio.run(main())


async def names(pages: FleetPages, query: str) -> list[str]:
    return [each["name"] for each in (await pages.view(f"/ui/hosts?{query}"))["hosts"]]


@pytest.mark.parametrize("query", ["state=down", "zone=az1", "rack=-", "cell=cell2", "aggregate=zone0"])
def test_filters_and_the_map_choose_the_same_hosts(tmp_path: Path, query: str) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            listed = await pages.view(f"/ui/hosts?{query}")
            assert 0 < listed["matching"] < HOSTS
            if not query.startswith("state"):
                assert (await pages.view(f"/ui/map?{query}"))["hosts"] == listed["matching"]
            else:
                assert listed["states"]["down"] == listed["matching"]

    asyncio.run(main())


def test_failed_builds_of_the_day_are_counted_by_node_and_sorted_by(tmp_path: Path) -> None:
    async def main() -> None:
        records = await open_sql_records(f"sqlite:///{tmp_path / 'own.db'}", Retention())
        await records.write(
            [],
            [
                *(failed(3, NOW - 60 - each) for each in range(4)),
                *(failed(5, NOW - 60 - each) for each in range(2)),
                failed(5, NOW - 2 * 86_400),  # not of this day
                failed(4, result=BUILT),
                failed(77),  # a host that is no more
            ],
        )
        async with fleet_pages(tmp_path, flat(8), records=records) as pages:
            view = await pages.view("/ui/hosts?sort=failures")
            found = [(each["name"], each["failures"]) for each in view["hosts"]]
            assert found[:3] == [("host3", 4), ("host5", 2), ("host0", 0)]
            assert view["failures_unknown"] is None
            page = await pages.page("/ui/hosts?sort=failures")
            assert "Failed builds, 24 h" in page and "/ui/decisions?host=host3" in page

    asyncio.run(main())


def test_records_in_a_file_count_nothing_so_hosts_are_sorted_by_what_they_report(tmp_path: Path) -> None:
    cloud = flat(3)
    cloud.reports[2] = report("host2", uuid_of(2), failed_builds=5)
    records = JsonLinesRecords(tmp_path / "records.jsonl", Retention())
    [view] = seen(tmp_path, cloud, "/ui/hosts?sort=failures", records=records)
    assert [(each["name"], each["failures"], each["failed_builds"]) for each in view["hosts"]] == [
        ("host2", None, 5), ("host0", None, 0), ("host1", None, 0),
    ]  # fmt: skip
    assert "file" in view["failures_unknown"]


def test_without_a_ledger_hosts_have_names_and_states(tmp_path: Path) -> None:
    [view] = seen(tmp_path, mixed_cloud(), "/ui/hosts", over_http=True)
    assert view["matching"] == HOSTS and all(not each["amounts"] for each in view["hosts"])


def test_hostile_names_are_text(tmp_path: Path) -> None:
    hostile = [
        "<script>alert(1)</script>",
        "a'\"><img src=x>",
        "\u202egnp.exe",
        "{{7*7}}",
        "x" * 255,
        "–&amp;",
    ]
    cloud = flat(0)
    for number, name in enumerate(hostile):
        cloud.providers.append(Provider(uuid_of(number), {}))
        cloud.reports.append(report(name, uuid_of(number), nodename=f"node {name}"[:255], cell=name[:200]))

    async def main() -> None:
        async with fleet_pages(tmp_path, cloud) as pages:
            for path in ("/ui/hosts", "/ui/map", *(f"/ui/hosts/{uuid_of(n)}" for n in range(len(hostile)))):
                page = await pages.page(path)
                assert "<script>alert" not in page and "<img src=x" not in page
            layout = (await pages.get("/ui/map/layout")).json()
            assert {each["cell"] for each in layout["groups"]} == {name[:200] for name in hostile}

    asyncio.run(main())
