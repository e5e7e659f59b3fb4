"""A journal gives the node table of its process at each of its versions, claims outstanding included."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.words.words import Words
from roost.ledger.retention import CommitRetention
from roost.model.aggregate import HostAggregate
from roost.model.node import NodeInstance, NodeReport
from roost.model.node_event import AggregateRemoved, AggregateSet, MembershipsSet
from roost.model.operator_word import Subject
from roost.placement.service import PlacementService
from roost.scheduler.nodes import journal
from roost.scheduler.nodes.feed import NodeFeed
from roost.scheduler.nodes.journal import JournalWriter, PastTable
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.node_journal import EventDecoder, EventEncoder, JournalMissing, NodeJournals
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database, DatabaseUnavailable
from support.cells import opened_cell
from support.databases import Place
from support.ledgers import opened as opened_ledger
from support.tables import seen_in
from support.upgrading import upgrade_empty

NOW = 1_000.0
KEEP_ALL = CommitRetention(interval=0)


def node(name: str, **more: object) -> NodeReport:
    """A report of a node of cell1."""
    report = {"host": name, "node": f"node-{name}", "cell": "cell1", "last_seen": NOW, **more}
    return NodeReport(**report)  # type: ignore[arg-type]


def opened(path: Any) -> Database:
    """A database with the conductor's tables."""
    database = Database(f"sqlite:///{path / 'api.db'}")
    SCHEMA.prepare(database)
    return database


def test_a_journal_tells_what_the_feed_and_the_scheduler_have_done(tmp_path) -> None:
    async def run() -> None:
        now = 100.0
        database = opened(tmp_path)
        async with opened_ledger(tmp_path / "ledger.db") as [ledger], opened_cell(tmp_path, "cell1") as cell:
            table = NodeTable()
            placement = PlacementService(ledger)
            words = Words(database, {"cell1": cell}, placement)
            aggregates = HostAggregates(AggregateStore(database), [cell], placement, words)
            feed = NodeFeed(
                [cell],
                table,
                journal=database,
                source=words.store,
                retention=KEEP_ALL,
                clock=lambda: now,
                monotonic=lambda: now,
            )
            kept: dict[int, dict[str, Any]] = {}

            async def refreshed() -> int:
                await feed.refresh()
                assert table.version is not None
                kept[table.version] = seen_in(table)
                return table.version

            assert await refreshed() == 0
            await cell.heartbeat([node("a"), node("b")])
            first = await refreshed()
            now = 120.0
            await cell.heartbeat([node("a")])
            assert await refreshed() == first, "a heartbeat is no event"
            now = 140.0
            await cell.heartbeat([node("a", enabled=False)])
            first = await refreshed()
            now = 160.0
            assert await refreshed() == first + 1, "b is down"
            await cell.heartbeat([node("b", failed_builds=3)])
            assert await refreshed() == first + 3
            zone = await aggregates.create("zone", {"availability_zone": "az1"})
            await aggregates.change_members(zone.uuid, ["a", "b"], [])
            last = await refreshed()
            assert await refreshed() == last, "aggregates that stay as they are make no events"
            await aggregates.replace(zone.uuid, "zone", {"availability_zone": "az2"}, 2)
            assert await refreshed() == last + 1, "new metadata are one event, however many members there are"
            await words.say(Subject("cell1", "b"), False, "fan")
            assert await refreshed() == last + 2, "an operator's word is one event"
            index = table.index("b")
            assert index is not None
            assert not table.enabled[index]
            table.claim("one", index, 512, 1024)
            kept[table.version or 0] = seen_in(table)
            table.claim("two", index, 256)
            kept[table.version or 0] = seen_in(table)
            table.built("one")
            table.release("two")
            await refreshed()
            await cell.heartbeat([node("b", num_instances=1, instances={"one": NodeInstance()})])
            await refreshed()
            assert not len(table.outstanding)
            await aggregates.change_members(zone.uuid, [], ["a", "b"])
            await aggregates.delete(zone.uuid)
            await cell.remove_nodes(["node-a"])
            last = await refreshed()

            assert table.journal is not None
            past = PastTable(NodeJournals(database), table.journal)
            for version in [*sorted(kept), *sorted(kept, reverse=True)]:
                assert seen_in(await past.at(version)) == kept[version], version
            with pytest.raises(JournalMissing, match=f"ends at {last}, before {last + 1}"):
                await past.at(last + 1)
            table.release("one")
            table.claim("three", index)
            await feed.close()
            past = PastTable(NodeJournals(database), table.journal)
            assert seen_in(await past.at(table.version or 0)) == seen_in(table), "closing writes the rest"
            with pytest.raises(JournalMissing, match="is not kept"):
                await PastTable(NodeJournals(database), "another").at(1)
        await database.close()

    asyncio.run(run())


def test_what_is_older_than_a_base_is_removed_and_so_are_ended_journals(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(journal, "LEAST_BEFORE_BASE", 0)
    monkeypatch.setattr(journal, "TIMES_BASE", 2)

    async def run() -> None:
        database = opened(tmp_path)
        journals = NodeJournals(database)
        ended = JournalWriter(database, NodeTable([node("z")]))
        await ended.write(5.0)
        table = NodeTable([node("a")])
        writer = JournalWriter(database, table)
        kept = {}
        for step in range(40):
            table.update([node("a", num_instances=step), node(f"b{step % 3}", failed_builds=step)])
            await writer.write(float(step))
            kept[table.version or 0] = (float(step), seen_in(table))
        assert table.journal is not None
        assert await journals.newest() == (table.journal, table.version)
        assert await journals.trim(20.0) > 0
        with pytest.raises(JournalMissing, match="and not at"):
            await PastTable(journals, table.journal).at(min(kept))
        past = PastTable(journals, table.journal)
        for version, (at, seen) in kept.items():
            if at >= 20.0:
                assert seen_in(await past.at(version)) == seen
        await journals.trim(100.0)
        assert await journals.newest() is None, "a journal that nobody writes any more goes as a whole"
        for each in (ended, writer):
            await each.close()
        await database.close()

    asyncio.run(run())


def test_a_journal_on_every_kind_of_database(place: Place) -> None:
    async def run() -> None:
        database = Database(place.url)
        upgrade_empty(SCHEMA, database)
        noise = random.Random(1)
        # More than 64 KiB that cannot be compressed: what a short column of bytes would cut.
        instances = {str(noise.getrandbits(400)): NodeInstance() for _ in range(2_000)}
        table = NodeTable()
        writer = JournalWriter(database, table)
        await writer.write(1.0)
        table.update([node("a", instances=instances, num_instances=2_000)])
        await writer.write(2.0)
        journals = NodeJournals(database)
        assert await journals.newest() == (table.journal, table.version)
        past = PastTable(journals, table.journal or "")
        assert seen_in(await past.at(table.version or 0)) == seen_in(table)
        assert await journals.trim(1.5) == 0
        assert await journals.trim(3.0) == 2
        await writer.close()
        await database.close()

    asyncio.run(run())


class Lossy(Database):
    """A database whose next write fails before or after it is made, as ``fails`` says."""

    fails = ""

    async def write(self, work: Any) -> Any:
        fails, self.fails = self.fails, ""
        if fails == "before":
            raise DatabaseUnavailable("gone")
        result = await super().write(work)
        if fails == "after":
            raise DatabaseUnavailable("gone")
        return result


async def write(writer: JournalWriter, database: Lossy, fails: str) -> None:
    """Write, with a failure if ``fails`` names one."""
    database.fails = fails
    try:
        await writer.write(1.0)
    except DatabaseUnavailable:
        assert fails


def test_batches_that_cannot_be_written_wait_and_a_lost_answer_writes_nothing_twice(tmp_path) -> None:
    async def run() -> None:
        opened(tmp_path)
        database = Lossy(f"sqlite:///{tmp_path / 'api.db'}")
        table = NodeTable()
        writer = JournalWriter(database, table)
        kept = {}
        await write(writer, database, "")
        for step, fails in enumerate(("", "before", "after", "before", "", "after", "")):
            table.update([node("a", num_instances=step + 1)])
            await write(writer, database, fails)
            kept[table.version or 0] = seen_in(table)
        past = PastTable(NodeJournals(database), table.journal or "")
        for version, seen in kept.items():
            assert seen_in(await past.at(version)) == seen
        await writer.close()
        await database.close()

    asyncio.run(run())


def test_a_new_journal_begins_where_too_much_waits(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(journal, "MOST_WAITING", 0)

    async def run() -> None:
        opened(tmp_path)
        database = Lossy(f"sqlite:///{tmp_path / 'api.db'}")
        table = NodeTable([node("a")])
        writer = JournalWriter(database, table)
        first = table.journal
        await write(writer, database, "before")
        await write(writer, database, "")
        assert table.journal != first
        past = PastTable(NodeJournals(database), table.journal or "")
        assert seen_in(await past.at(table.version or 0)) == seen_in(table)
        await writer.close()
        await database.close()

    asyncio.run(run())


reports = st.builds(
    lambda name, which, nodename, cell, seen, heat, there, memory: node(
        name,
        node=which,
        nodename=nodename,
        cell=cell,
        last_seen=NOW - seen,
        metrics={} if heat is None else {"heat": heat},
        instances={each: NodeInstance(project_id="p" if heat else "") for each in there},
        num_instances=len(there) + (seen == 100),
        free_ram_mb=memory,
    ),
    st.sampled_from("abc"),
    st.sampled_from(["n1", "n2", "n3", "n4"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from([1, 100]),
    st.none() | st.sampled_from([1.5, float("inf")]),
    st.sets(st.sampled_from(["i1", "i2", "i3"])).map(sorted),
    st.none() | st.integers(0, 4096),
)
aggregates = st.builds(
    HostAggregate,
    st.sampled_from(["agg-1", "agg-2"]),
    st.just("name"),
    st.dictionaries(st.sampled_from(["availability_zone", "ssd"]), st.sampled_from(["x", "y"])),
)
events = (
    st.builds(AggregateSet, aggregates)
    | st.builds(
        MembershipsSet,
        st.sampled_from(["n1", "n2", "n3", "n4"]),
        st.sets(st.sampled_from(["agg-1", "agg-2"])).map(sorted).map(tuple),
    )
    | st.builds(AggregateRemoved, st.just("agg-1"))
)
claims = st.tuples(
    st.sampled_from(["claim", "built", "release"]),
    st.sampled_from(["i1", "i2", "i3", "i4"]),
    st.sampled_from(["n1", "n2", "n3"]),
)
moments = st.floats(NOW, NOW + 200)
histories = st.lists(
    reports | reports | events | claims | st.sampled_from(["n1", "n2", "n3"]) | moments, max_size=25
)


def happen(table: NodeTable, each: object) -> None:
    """Let something happen to a table: a report, an event, a claim, a removal, or a look at heartbeats."""
    match each:
        case str():
            table.remove([each])
        case NodeReport():
            table.update([each])
        case float():
            table.seen_since(each - 60)
        case ("claim", str(instance), str(which)):
            index = table.index_of_node(which)
            if index is not None:
                table.claim(instance, index, 100, 200)
        case ("built", str(instance), _):
            table.built(instance)
        case ("release", str(instance), _):
            table.release(instance)
        case _:
            table.apply_to_aggregates(each)  # type: ignore[arg-type]


def check_history(before: list[object], history: list[object], bases: set[int]) -> None:
    """A table recorded from some moment on is made again at each of its versions, from any base."""
    table = NodeTable()
    for each in before:
        happen(table, each)
    table.record("journal")
    encoder, decoder = EventEncoder(), EventDecoder()
    made = NodeTable()
    for event in decoder.decode_base(encoder.encode_base(table.state())):
        made.apply(event)
    assert seen_in(made) == seen_in(table)
    for number, each in enumerate(history):
        happen(table, each)
        for event in decoder.decode(encoder.encode(table.take_events())):
            made.apply(event)
        assert seen_in(made) == seen_in(table)
        if number in bases:
            made = NodeTable()
            for event in decoder.decode_base(encoder.encode_base(table.state())):
                made.apply(event)
            assert seen_in(made) == seen_in(table)


@settings(deadline=None, max_examples=40)
@given(histories, histories, st.sets(st.integers(0, 25)))
def test_events_give_every_state(before: list[object], history: list[object], bases: set[int]) -> None:
    check_history(before, history, bases)


@pytest.mark.nightly
@settings(deadline=None, max_examples=3_000)
@given(histories, histories, st.sets(st.integers(0, 25)))
def test_events_give_every_state_of_many(
    before: list[object], history: list[object], bases: set[int]
) -> None:
    check_history(before, history, bases)
