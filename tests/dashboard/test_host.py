"""A host's page: its tree, who holds what, its hardware, why it is disabled, its builds and history."""

import asyncio
from pathlib import Path
from typing import Any

from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.operator_word import Subject
from roost.model.record import BUILT, Run
from roost.model.vocabulary import SHARING_TRAIT
from roost.records import Retention
from roost.records.backend import open_sql_records
from roost.records.jsonl import JsonLinesRecords
from roost.records.rows import encoded
from support.clouds import AGGREGATES, GPU, NOW, Cloud, Provider, flat, report, uuid_of
from support.fleet_pages import failed, fleet_pages

HOST = uuid_of(1)


def tree_cloud() -> Cloud:
    """A host with two devices below it, and a disk that it shares with others."""
    return Cloud(
        [
            Provider(
                uuid_of(9),
                {"DISK_GB": Inventory(100)},
                traits=frozenset({SHARING_TRAIT}),
                aggregates=frozenset({AGGREGATES[0]}),
            ),
            Provider(
                HOST,
                {"VCPU": Inventory(8, reserved=2, allocation_ratio=2.0), "MEMORY_MB": Inventory(4096)},
                aggregates=frozenset({AGGREGATES[0]}),
                used={"VCPU": 3, "MEMORY_MB": 1024},
            ),
            Provider(uuid_of(11), {GPU: Inventory(2)}, HOST, frozenset({"CUSTOM_RED"}), used={GPU: 1}),
            Provider(uuid_of(12), {GPU: Inventory(2)}, HOST),
        ],
        [report("host", HOST, aggregates=(HostAggregate("rack1", "rack one", {"rack": "r1"}),))],
    )


def seen(folder: Path, cloud: Cloud, path: str = f"/ui/hosts/{HOST}", **more: Any) -> Any:
    async def run() -> Any:
        async with fleet_pages(folder, cloud, **more) as pages:
            return await pages.view(path)

    return asyncio.run(run())


def test_a_host_has_its_tree_with_inventories_and_who_holds_what(tmp_path: Path) -> None:
    view = seen(tmp_path, tree_cloud())
    assert (view["name"], view["state"], view["rack"], view["zone"]) == ("host", "up", "r1", "nova")
    providers = view["tree"]["providers"]
    assert [(each["uuid"], each["depth"], each["shared"]) for each in providers] == [
        (HOST, 0, False), (uuid_of(11), 1, False), (uuid_of(12), 1, False), (uuid_of(9), 0, True),
    ]  # fmt: skip
    vcpu = providers[0]["inventories"][0]
    assert (vcpu["resource_class"], vcpu["used"], vcpu["capacity"], vcpu["reserved"], vcpu["total"]) == (
        "VCPU", 3, 12, 2, 8,
    )  # fmt: skip
    assert providers[1]["traits"] == ["CUSTOM_RED"] and providers[1]["inventories"][0]["used"] == 1
    assert [each["name"] for each in view["aggregates"]] == ["rack one"]
    assert view["holders"]["total"] == 2
    held = {each["consumer"]: each["holds"] for each in view["holders"]["holders"]}
    assert {HOST: {"VCPU": 3, "MEMORY_MB": 1024}} in held.values() and {
        uuid_of(11): {GPU: 1}
    } in held.values()


def test_consumers_are_paged_the_newest_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(1, vcpus=100)) as pages:
            from roost.placement.commands.allocations import WriteAllocations
            from support.clouds import holding

            ledger = pages.service.ledger
            assert ledger is not None
            for number in range(30):
                write = holding(uuid_of(0x500 + number), {uuid_of(0): {"VCPU": 1}})
                await ledger.execute(WriteAllocations((write,)))
            first = (await pages.view(f"/ui/hosts/{uuid_of(0)}"))["holders"]
            second = (await pages.view(f"/ui/hosts/{uuid_of(0)}?page=2"))["holders"]
            assert (first["total"], len(first["holders"]), len(second["holders"])) == (30, 15, 15)
            assert first["holders"][0]["consumer"] == uuid_of(0x500 + 29)
            assert second["holders"][-1]["consumer"] == uuid_of(0x500)
            assert (await pages.view(f"/ui/hosts/{uuid_of(0)}?page=9"))["holders"]["page"] == 2

    asyncio.run(main())


def test_what_is_disabled_and_by_whose_word(tmp_path: Path) -> None:
    cloud = tree_cloud()
    for subject in (("cell1",), ("cell1", "host"), ("cell1", "host", HOST)):
        folder = tmp_path / str(len(subject))
        folder.mkdir()
        table = cloud.table()
        table.set_words({Subject(*subject): False})
        view = seen(folder, cloud, table=table)
        assert view["state"] == "disabled"
        assert [each["subject"] for each in view["why"]] == [("cell", "host", "node")[len(subject) - 1]]
    cloud.reports = [report("host", HOST, enabled=False, last_seen=NOW - 1000, refused="too large")]
    (tmp_path / "agent").mkdir()
    view = seen(tmp_path / "agent", cloud)
    assert view["state"] == "down" and [each["subject"] for each in view["why"]] == ["agent"]
    assert view["last_seen"] == NOW - 1000


def test_builds_on_the_host_the_newest_first(tmp_path: Path) -> None:
    async def main() -> None:
        records = await open_sql_records(f"sqlite:///{tmp_path / 'own.db'}", Retention())
        attempts = [failed(0, NOW - 60), failed(0, NOW - 30, BUILT), failed(1, NOW - 10)]
        runs = [
            Run(
                id=each.run,
                request_id="req",
                project_id="p",
                user_id="u",
                instances=(each.instance,),
                spec={},
                started_at=each.at,
                finished_at=each.at,
                version=1,
            )
            for each in attempts
        ]
        await records.write([encoded(each) for each in runs], attempts)
        async with fleet_pages(tmp_path, flat(2), records=records) as pages:
            view = await pages.view(f"/ui/hosts/{uuid_of(0)}")
            history = view["history"]
            assert [(each["at"], each["result"], each["reason"]) for each in history["attempts"]] == [
                (NOW - 30, "built", None), (NOW - 60, "failed", "no port"),
            ]  # fmt: skip
            assert history["failed"] == 1
            assert history["events_unknown"] == "without an API database there are no events"
            page = await pages.page(f"/ui/hosts/{uuid_of(0)}")
            assert "no port" in page and "1 of the last 2 failed" in page

    asyncio.run(main())


def test_records_that_cannot_be_searched_are_told(tmp_path: Path) -> None:
    records = JsonLinesRecords(tmp_path / "records.jsonl", Retention())
    view = seen(tmp_path, tree_cloud(), records=records)
    assert view["history"]["attempts_unknown"] is None or view["history"]["attempts"] == []


def test_a_provider_without_a_report_a_host_without_a_provider_and_neither(tmp_path: Path) -> None:
    cloud = tree_cloud()
    cloud.reports = []

    async def main() -> None:
        async with fleet_pages(tmp_path, cloud) as pages:
            view = await pages.view(f"/ui/hosts/{HOST}")
            assert view["report"] is None and view["state"] is None and len(view["tree"]["providers"]) == 4
            assert "No agent reports this provider" in await pages.page(f"/ui/hosts/{HOST}")
            child = await pages.get(f"/ui/hosts/{uuid_of(11)}")
            assert child.status_code == 404 and HOST in child.text
            assert (await pages.get(f"/ui/hosts/{uuid_of(77)}")).status_code == 404

    asyncio.run(main())
    (tmp_path / "unplaced").mkdir()
    alone = Cloud([], [report("host", HOST)])
    view = seen(tmp_path / "unplaced", alone)
    assert view["tree"] is None and view["holders"] is None
    (tmp_path / "http").mkdir()
    view = seen(tmp_path / "http", tree_cloud(), over_http=True)
    assert view["version"] is None and view["tree"] is None and view["state"] == "up"
