"""What agents report reaches the scheduler's node table."""

import asyncio

from msgspec.structs import replace

from roost.conductor.node_feed import DECODED_AT_ONCE, LOST_SECONDS, NodeFeed
from roost.model.node import NodeReport
from roost.scheduler.nodes import NodeTable
from roost.storage import DatabaseUnavailable
from support.cells import built, failed, instance, opened_cell
from support.numa_hosts import two_cells


def seen(host: str, at: float, cell: str = "cell1") -> NodeReport:
    return NodeReport(host=host, node=f"node-{host}", cell=cell, last_seen=at)


def test_table_has_the_last_report_of_every_host(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as one, opened_cell(tmp_path, "cell2") as two:
            table = NodeTable()
            feed = NodeFeed([one, two], table)
            await feed.refresh()
            assert len(table) == 0
            await one.heartbeat([seen("a", 10.0)])
            await two.heartbeat([seen("b", 500.0, "cell2")])
            await feed.refresh()
            await one.heartbeat([seen("a", 20.0), seen("c", 19.5)])
            await feed.refresh()
            assert table.hosts == ["a", "b", "c"]
            assert [table.report(index).last_seen for index in range(3)] == [20.0, 500.0, 19.5]

    asyncio.run(run())


def test_what_nodes_report_of_their_hardware_is_decoded_before_it_is_asked_for(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as cell:
            table = NodeTable()
            pool = {"vendor_id": "10de", "product_id": "2236", "count": 1}
            await cell.heartbeat(
                replace(seen(f"h{number}", 10.0), numa_topology=two_cells(), pci_device_pools=(pool,))
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

            async def fail(work) -> None:
                raise DatabaseUnavailable("gone")

            monkeypatch.setattr(one.database, "read", fail)
            await one.heartbeat([seen("a", 10.0)])
            await two.heartbeat([seen("b", 10.0, "cell2")])
            task = asyncio.create_task(feed.run())
            await asyncio.sleep(0.05)
            assert table.hosts == ["b"]
            monkeypatch.setattr(one.database, "read", read)
            await asyncio.sleep(0.1)
            assert table.hosts == ["b", "a"]
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())


def test_nodes_that_a_cell_has_no_longer_are_removed(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path, "cell1") as one, opened_cell(tmp_path, "cell2") as two:
            table = NodeTable()
            feed = NodeFeed([one, two], table)
            await one.heartbeat([seen("a", 10.0), seen("b", 10.0)])
            await two.heartbeat([seen("c", 10.0, "cell2")])
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
            await cell.heartbeat([seen("a", 10.0)])
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
