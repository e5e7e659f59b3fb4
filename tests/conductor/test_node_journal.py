"""The journal's events, applied in order, give the node table as the feed had it."""

import asyncio

from msgspec.structs import replace

from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.store import AggregateStore
from roost.conductor.node_feed import NodeFeed
from roost.conductor.node_journal import NodeJournal
from roost.conductor.tables import SCHEMA
from roost.ledger.retention import Retention
from roost.model.aggregate import HostAggregate
from roost.model.node import NodeReport
from roost.scheduler.nodes import NodeTable
from roost.storage import Database
from support.cells import opened_cell

Facts = tuple[NodeReport, bool, tuple[HostAggregate, ...]]


def facts(table: NodeTable) -> dict[str, Facts]:
    """What a decision sees of each node: its report but for the heartbeat, whether it is up, its
    aggregates."""
    found = {}
    for node in table.nodes:
        index = table.index_of_node(node)
        if index is not None:
            report = replace(table.report(index), last_seen=0.0)
            found[node] = (report, bool(table.alive[index]), table.aggregates(index))
    return found


def test_each_version_can_be_made_again(tmp_path) -> None:
    async def run() -> None:
        now = 100.0
        database = Database(f"sqlite:///{tmp_path / 'api.db'}")
        SCHEMA.prepare(database)
        journal = NodeJournal(database)
        async with opened_cell(tmp_path, "cell1") as cell:
            table = NodeTable()
            kept: dict[int, dict[str, Facts]] = {}
            nothing = Retention(interval=0)
            aggregates = HostAggregates(AggregateStore(database), [cell])
            feed = NodeFeed(
                [cell],
                table,
                journal=journal,
                aggregates=aggregates.store,
                retention=nothing,
                clock=lambda: now,
            )

            async def refreshed() -> int:
                await feed.refresh()
                assert table.version is not None
                kept[table.version] = facts(table)
                return table.version

            def node(name: str, **more: object) -> NodeReport:
                report = {"host": name, "node": f"node-{name}", "cell": "cell1", "last_seen": now, **more}
                return NodeReport(**report)  # type: ignore[arg-type]

            assert await refreshed() == 0
            await cell.heartbeat([node("a"), node("b")])
            first = await refreshed()
            now = 150.0
            await cell.heartbeat([node("a")])
            assert await refreshed() == first, "a heartbeat is no event"
            await cell.heartbeat([node("a", enabled=False)])
            first = await refreshed()
            now = 170.0
            down = await refreshed()
            assert down == first + 1
            await cell.heartbeat([node("b", failed_builds=3)])
            assert await refreshed() == down + 2
            await cell.heartbeat([node("a", enabled=True), node("b", failed_builds=3)])
            assert await refreshed() == down + 3
            zone = await aggregates.create("zone", {"availability_zone": "az1"})
            await aggregates.change_members(zone.uuid, ["a", "b"], [])
            last = await refreshed()
            assert {name: each[2] for name, each in kept[last].items()} == dict.fromkeys(
                ("node-a", "node-b"), (zone.named,)
            )
            assert await refreshed() == last, "aggregates that stay as they are make no events"
            await aggregates.replace(zone.uuid, "zone", {"availability_zone": "az2"}, 2)
            assert await refreshed() == last + 1, "new metadata are one event, however many members there are"
            await aggregates.change_members(zone.uuid, [], ["a", "b"])
            await aggregates.delete(zone.uuid)
            await refreshed()
            await cell.remove_nodes(["node-a"])
            last = await refreshed()

            async def check(versions: list[int]) -> None:
                for version in versions:
                    made = NodeTable()
                    made.seen_since(0.0)
                    for number, event in await journal.events(until=version):
                        made.apply(number, event)
                    assert facts(made) == kept[version], version

            await check([*kept])
            # The state at the versions that are kept can be made again when older events are gone.
            before = len(await journal.events())
            assert await journal.trim(2, 0.0) > 0
            await check([last - 1, last])
            await cell.heartbeat([node("b", failed_builds=4)])
            last = await refreshed()
            assert await journal.trim(1_000, now + 1) > 0
            left = await journal.events()
            assert len(left) < before
            await check([last])
        await database.close()

    asyncio.run(run())
