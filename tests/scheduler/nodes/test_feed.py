"""What agents report reaches the scheduler's node table."""

import asyncio

from msgspec.structs import replace

from roost.model.instance import AttemptKey, DestroyOrder
from roost.model.node import NodeReport
from roost.scheduler.nodes.feed import DECODED_AT_ONCE, LOOK_SECONDS, LOST_SECONDS, NodeFeed
from roost.scheduler.nodes.table import NodeTable
from roost.state.cell_database.deletions import note_destroyed
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.nodes import read_signs
from roost.storage import DatabaseUnavailable
from support.agents import until
from support.cells import NOW, built, failed, instance, opened_cell
from support.numa_hosts import two_cells
from support.works import is_of


def seen(host: str, cell: str = "cell1") -> NodeReport:
    return NodeReport(host=host, node=f"node-{host}", cell=cell)


def up(table: NodeTable) -> set[str]:
    alive = table.seen_since(0.0)
    return {host for host in table.hosts if alive[table.index(host) or 0]}


def test_table_has_the_last_report_of_every_host(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as one, opened_cell(tmp_path, "cell2") as two:
            table = NodeTable()
            feed = NodeFeed([one, two], table)
            await feed.refresh()
            assert len(table) == 0
            await one.heartbeat([seen("a")])
            await two.heartbeat([seen("b", "cell2")])
            await feed.refresh()
            await one.heartbeat([replace(seen("a"), num_io_ops=2), seen("c")])
            await feed.refresh()
            assert table.hosts == ["a", "b", "c"]
            assert [table.report(index).num_io_ops for index in range(3)] == [2, 0, 0]

    asyncio.run(run())


def test_host_whose_session_stands_still_is_down_whatever_the_clocks_say(tmp_path) -> None:
    async def run() -> None:
        now = 0.0
        async with opened_cell(tmp_path) as cell:
            table = NodeTable()
            feed = NodeFeed([cell], table, monotonic=lambda: now)
            await cell.heartbeat([seen("a"), seen("b")])
            for _ in range(6):
                await feed.refresh()
                assert up(table) == {"a", "b"}
                await cell.heartbeat([seen("a")])
                now += 10.0
            await feed.refresh()
            assert up(table) == {"a"}
            await cell.heartbeat([seen("b")])
            now += LOOK_SECONDS
            await feed.refresh()
            assert up(table) == {"a", "b"}

    asyncio.run(run())


def test_signs_of_life_are_read_from_time_to_time_and_at_once_with_any_change(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        now = 0.0
        async with opened_cell(tmp_path) as cell:
            looked = []
            read = cell.read

            async def counted(work):
                if is_of(work, read_signs):
                    looked.append(now)
                return await read(work)

            monkeypatch.setattr(cell, "read", counted)
            table = NodeTable()
            feed = NodeFeed([cell], table, monotonic=lambda: now)
            await cell.heartbeat([seen("a")])
            for now in range(12):  # noqa: B007 - the clock reads it
                await cell.heartbeat([seen("a")])
                await feed.refresh()
            assert looked == [0, 5, 10]
            for change in (
                cell.heartbeat([replace(seen("a"), num_io_ops=3)]),
                cell.heartbeat([seen("new")]),
                cell.write(give_orders((DestroyOrder("i", 1, "a"),), NOW)),
            ):
                looked.clear()
                await change
                await feed.refresh()
                assert looked == [11]
            assert up(table) == {"new"}, "a owes a destruction"

    asyncio.run(run())


def test_outage_of_a_cell_takes_no_host_for_dead_but_its_hosts_are_not_used(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        now = 0.0
        async with opened_cell(tmp_path) as cell:
            table = NodeTable()
            feed = NodeFeed([cell], table, monotonic=lambda: now)
            await cell.heartbeat([seen("a"), seen("dead")])
            for now in range(0, 80, 10):  # noqa: B007 - the clock reads it
                await cell.heartbeat([seen("a")])
                await feed.refresh()
            assert up(table) == {"a"}

            async def fail(work, **_) -> None:
                raise DatabaseUnavailable("gone")

            with monkeypatch.context() as outage:
                outage.setattr(cell.database, "read", fail)
                now = 100
                await feed.refresh()
                now = 150
                await feed.refresh()
                assert up(table) == {"a"}, "instances may wait for their cell for a while"
                now = 160
                await feed.refresh()
                assert up(table) == set(), "no new instance could be put there"
            now = 400
            await feed.refresh()
            assert up(table) == {"a"}, "nobody could show a sign of life meanwhile; who was dead is not back"

    asyncio.run(run())


def test_host_that_owes_a_destruction_is_not_up(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            table = NodeTable()
            feed = NodeFeed([cell], table)
            await cell.heartbeat([seen("a")])
            await cell.add([instance()])
            await cell.fail([AttemptKey("i", 1)], "too long")
            await feed.refresh()
            assert up(table) == set()
            await cell.write(note_destroyed((DestroyOrder("i", 1, "a"),), NOW))
            await feed.refresh()
            assert up(table) == {"a"}

    asyncio.run(run())


def test_what_nodes_report_of_their_hardware_is_decoded_before_it_is_asked_for(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as cell:
            table = NodeTable()
            pool = {"vendor_id": "10de", "product_id": "2236", "count": 1}
            await cell.heartbeat(
                replace(seen(f"h{number}"), numa_topology=two_cells(), pci_device_pools=(pool,))
                for number in range(DECODED_AT_ONCE + 1)
            )
            await NodeFeed([cell], table).refresh()
            assert len(table) == DECODED_AT_ONCE + 1
            assert not table.decode(1)
            assert table.numa.of(DECODED_AT_ONCE) is not None

    asyncio.run(run())


def test_cell_that_cannot_be_read_costs_the_others_nothing(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as one, opened_cell(tmp_path, "cell2") as two:
            table = NodeTable()
            feed = NodeFeed([one, two], table, every_seconds=0.01)
            read = one.database.read

            async def fail(work, **_) -> None:
                raise DatabaseUnavailable("gone")

            monkeypatch.setattr(one.database, "read", fail)
            await one.heartbeat([seen("a")])
            await two.heartbeat([seen("b", "cell2")])
            task = asyncio.create_task(feed.run())
            await until(lambda: table.hosts == ["b"])
            monkeypatch.setattr(one.database, "read", read)
            await until(lambda: table.hosts == ["b", "a"])
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())


def test_nodes_that_a_cell_has_no_longer_are_removed(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as one, opened_cell(tmp_path, "cell2") as two:
            table = NodeTable()
            feed = NodeFeed([one, two], table)
            await one.heartbeat([seen("a"), seen("b")])
            await two.heartbeat([seen("c", "cell2")])
            await feed.refresh()
            await one.remove_nodes(["node-a", "unknown"])
            await feed.refresh()
            assert (table.index("a"), len(table)) == (None, 2)

    asyncio.run(run())


def test_claims_are_settled_by_what_becomes_of_the_instances(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as cell:
            now = 0.0
            table = NodeTable()
            feed = NodeFeed([cell], table, monotonic=lambda: now)
            await cell.heartbeat([seen("a")])
            await feed.refresh()
            for name in ("active", "failed", "lost", "waits"):
                table.claim(name, 0)
            await cell.add([replace(instance(name), node="node-a") for name in ("active", "failed", "waits")])
            await cell.report([built("active"), failed("failed")])
            await feed.refresh()
            assert {name for name, _ in table.outstanding} == {"active", "lost", "waits"}
            assert (table.num_instances[0], table.num_io_ops[0]) == (3, 2)
            now = LOST_SECONDS
            await cell.delete(["active"])
            await cell.destroyed([instance("active")])
            await feed.refresh()
            assert {name for name, _ in table.outstanding} == {"waits"}

    asyncio.run(run())
