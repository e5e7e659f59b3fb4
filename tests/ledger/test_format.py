"""docs/format.md is true: a reader that shares no code with Roost rebuilds each state by it alone."""

import asyncio
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger.format_reader import REVISION, Reader, State, Unreadable
from roost.fleet import Fleet
from roost.ledger import SCHEMA, Command, Held, findings
from roost.ledger.facts import assigned_in, members_in, used_in
from roost.ledger.holdings import held_by_all
from roost.ledger.past_fleet import HistoryMissing, PastFleet
from roost.ledger.tables import metadata
from roost.model.allocation import ANTI_AFFINITY, GroupClaim
from roost.model.assignment import AssignedCell, AssignedDevices, Assignment
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import (
    AddResourceClass,
    AddTrait,
    DeleteResourceClass,
    DeleteTrait,
    RenameResourceClass,
)
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.commands.word import AnnounceWord
from roost.placement.errors import PlacementError
from roost.storage import Database, SchemaTooNew, SchemaTooOld
from support.ledger_format import COMPARED, TAGS, copied
from support.ledgers import claim, findings_in, host, opened, run
from support.seeds import nightly_seed

HeldAt = dict[int, dict[str, Held]]
"""Position -> consumer -> the consumer with its allocations."""

PROVIDERS = [f"p{number}" for number in range(4)]
CLASSES = ["VCPU", "MEMORY_MB", "CUSTOM_A", "CUSTOM_B"]

UNCHECKED = ("database_identity", "waiting_writers", "changed_at", "committed_at", "writer")
"""Tables and columns of which neither commits nor other tables say anything."""


MEMBER = GroupClaim("group", ANTI_AFFINITY, 3)
PINNED = AssignedCell(0, 1, pinned=((0, 4), (1, 5)), reserved=(6,), memory_mb=512, page_size_kb=2048)
DEVICES = AssignedDevices("request", "pool", 1, ("0000:81:00.1",))


def write(consumer: str, *providers: str, vcpus: int = 1, **members: Any) -> ConsumerWrite:
    """The write of a consumer that takes processors from each provider, and is deleted if there is none."""
    held = {provider: {"VCPU": vcpus} for provider in providers}
    return ConsumerWrite(consumer=consumer, allocations=held, project_id="project é", user_id="u", **members)


ALL_KINDS: list[Command[Any]] = [
    *host("p0", VCPU=16, MEMORY_MB=64),
    *host("p1", VCPU=16),
    *host("p2", "p1", VCPU=16),
    *host("p3", "p2", VCPU=16),
    UpdateProvider("p2", "moved", "p0"),
    UpdateProvider("p2", "root", None),
    SetTraits("p0", frozenset({"CUSTOM_X", "HW_CPU_X86_AVX"}), add_custom=True),
    SetAggregates("p0", frozenset({"agg-1", "agg-2"})),
    AddResourceClass("CUSTOM_A"),
    SetInventories("p1", {"VCPU": Inventory(16, 1, 1, 100, 1, 1.1), "CUSTOM_A": Inventory(8)}),
    claim("in class", "p1", CUSTOM_A=2),
    RenameResourceClass("CUSTOM_A", "CUSTOM_B", ("in class",)),
    WriteAllocations((write("c0", "p0", "p1", group=MEMBER),)),
    WriteAllocations((write("c1", "p0", assignment=Assignment("p0", (PINNED,), (DEVICES,))),)),
    # As Nova moves an instance: the migration takes over all that it had.
    WriteAllocations((write("c1", "p1"), write("migration", "p0"))),
    AnnounceWord(7),
    DeleteAllocations("c0"),
    DeleteProvider("p3"),
    AddTrait("CUSTOM_Z"),
    DeleteTrait("CUSTOM_Z"),
]
"""Commands whose commits have all kinds of changes, trees that grow, move and shrink, and custom names."""


def drawn(draw: random.Random, consumers: list[str]) -> Command[Any]:
    """A command, which may be refused. ``consumers``: the ones that exist."""
    provider, other = draw.sample(PROVIDERS, 2)
    consumer = draw.choice([*consumers, "new", "newer"])
    makers = [
        lambda: CreateProvider(provider, f"name of {provider}", draw.choice([None, None, other])),
        lambda: UpdateProvider(provider, f"name {draw.randrange(99)}", draw.choice([None, other])),
        lambda: DeleteProvider(provider),
        lambda: SetInventories(provider, inventories(draw)),
        lambda: SetTraits(provider, some(draw, ["CUSTOM_X", "CUSTOM_Y", "HW_CPU_X86_AVX"]), add_custom=True),
        lambda: SetAggregates(provider, some(draw, ["agg-1", "agg-2"]), raises=draw.random() < 0.5),
        lambda: AddResourceClass(draw.choice(CLASSES[2:])),
        lambda: RenameResourceClass(*draw.sample(CLASSES[2:], 2), tuple(consumers)),
        lambda: DeleteResourceClass(draw.choice(CLASSES[2:])),
        lambda: draw.choice([AddTrait, DeleteTrait])(draw.choice(["CUSTOM_X", "CUSTOM_Z"])),
        lambda: DeleteAllocations(consumer),
        lambda: AnnounceWord(draw.randrange(1, 2**53)),
        lambda: Reshape((NewInventories(provider, inventories(draw)),), (drawn_write(draw, consumer),)),
        lambda: WriteAllocations(tuple(drawn_write(draw, each) for each in {consumer, "migration"})),
        *[lambda: WriteAllocations((drawn_write(draw, consumer),))] * 8,
    ]
    return draw.choice(makers)()


def inventories(draw: random.Random) -> dict[str, Inventory]:
    return {
        name: Inventory(draw.randint(8, 20), draw.randint(0, 2), 1, 100, 1, draw.choice([1.0, 1.1, 16.0]))
        for name in {"VCPU"} | some(draw, CLASSES)
    }


def some(draw: random.Random, names: list[str]) -> frozenset[str]:
    return frozenset(draw.sample(names, draw.randint(0, len(names))))


def drawn_write(draw: random.Random, consumer: str) -> ConsumerWrite:
    """A write, some with a server group, some with an assignment, some that delete the consumer."""
    providers = draw.sample(PROVIDERS, draw.choice([0, 1, 1, 1, 2]))
    members: dict[str, Any] = {"consumer_type": draw.choice([None, "INSTANCE"])}
    members["group"] = draw.choice([None, GroupClaim(f"g{draw.randrange(2)}", ANTI_AFFINITY, 3)])
    if providers and draw.random() < 0.5:
        cells = (AssignedCell(0, 0, pinned=((0, draw.randrange(40)),), memory_mb=draw.choice([0, 512])),)
        devices = (AssignedDevices("request", "pool", 1, (f"0000:81:00.{draw.randrange(8)}",)),)
        parts = (draw.choice([(), cells]), draw.choice([(), devices]))
        members["assignment"] = Assignment(providers[0], *parts)
    return write(consumer, *providers, vcpus=draw.randint(1, 2), **members)


async def fill(path: Path, draw: random.Random, rounds: int) -> HeldAt:
    """Make commits, some of them of several commands. Returns the consumers at each position."""
    at: HeldAt = {}
    async with opened(path) as [ledger]:

        async def execute(*commands: Command[Any]) -> None:
            for outcome in await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True):
                if isinstance(outcome, Exception) and not isinstance(outcome, PlacementError):
                    raise outcome
            at[(await ledger.current()).version] = ledger.database.read_now(held_by_all)

        for command in ALL_KINDS:
            await ledger.execute(command)
            await execute()
        for _ in range(rounds):
            consumers = sorted(ledger.database.read_now(held_by_all))
            await execute(*(drawn(draw, consumers) for _ in range(draw.choice([1, 1, 4]))))
        await run(ledger, *host("last", VCPU=8), SetTraits("last", frozenset({"HW_CPU_X86_AVX"})))
        await run(ledger, SetAggregates("last", frozenset({"agg"})), claim("last", "last", VCPU=1))
        await execute()
    return at


def trim(path: Path, keep: int) -> None:
    async def work() -> None:
        async with opened(path) as [ledger]:
            await ledger.trim(keep, 0.0)

    asyncio.run(work())


@pytest.fixture(scope="module", params=range(2))
def filled(request, tmp_path_factory) -> tuple[Path, HeldAt]:
    """A database made by random commands, and its consumers at each position."""
    path = tmp_path_factory.mktemp("format") / "ledger.db"
    return path, asyncio.run(fill(path, random.Random(nightly_seed() + request.param), 40))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A database with all kinds of changes, made by the same commands each time."""
    path = tmp_path_factory.mktemp("format") / "ledger.db"
    asyncio.run(fill(path, random.Random(0), 0))
    return path


def plain(value: object) -> Any:
    """A value as its JSON says it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def of_fleet(fleet: Fleet) -> State:
    """What a fleet says of names and providers, as the reader has it."""
    state: State = {("word", ""): fleet.word} if fleet.word else {}
    state |= {("resource_class", name): number for name, number in fleet.resource_classes.items()}
    state |= {("trait", name): number for name, number in fleet.traits.items()}
    for row in fleet.rows().tolist():
        uuid, about = fleet.uuid(row), fleet.facts(row)
        state["provider", uuid] = {"row": row, "name": about.name, "parent": about.parent}
        state["generation", uuid] = about.generation
        state["inventory", uuid] = plain(fleet.inventories(row))
        state["traits", uuid] = list(fleet.traits_of(row))
        state["aggregates", uuid] = list(fleet.aggregates_of(row))
    return {key: fact for key, fact in state.items() if fact not in ({}, [])}


def of_consumers(held: dict[str, Held]) -> State:
    """What Roost reads of consumers, as the reader has it."""
    return {
        ("allocations", uuid): {**plain(one.consumer), "holds": one.allocations} for uuid, one in held.items()
    }


def compare(state: State, fleet: Fleet) -> None:
    """Compare a state of the reader with a fleet, which holds the sums of allocations only."""
    consumers = {name: fact for (kind, name), fact in state.items() if kind == "allocations"}
    assert {key: fact for key, fact in state.items() if key[0] != "allocations"} == of_fleet(fleet)
    used: Counter[tuple[str, str]] = Counter()
    for fact in consumers.values():
        for provider, resources in fact["holds"].items():
            used.update({(provider, name): amount for name, amount in resources.items()})
    assert used == used_in(fleet)
    members = {(fact["group"], name): tuple(sorted(fact["holds"])) for name, fact in consumers.items()}
    assert {key: held for key, held in members.items() if key[0] is not None} == members_in(fleet)
    assigned = {
        (fact["assignment"]["node"], name): fact["assignment"]
        for name, fact in consumers.items()
        if fact["assignment"] is not None
    }
    assert assigned == {
        (node, name): plain(each) for node, on in assigned_in(fleet).items() for name, each in on.items()
    }


async def past_fleets(path: Path, first: int, last: int) -> None:
    """Compare the reader with Roost's own past fleet at each position."""
    database, reader = Database(f"sqlite:///{path}"), Reader(path)
    past = await PastFleet.open(database)
    for position in range(last, first - 1, -1):
        compare(reader.at(position), await past.at(position))
    with pytest.raises(HistoryMissing):
        await past.at(first - 1)
    with pytest.raises(Unreadable, match=f"positions {first} to {last} can be rebuilt"):
        reader.at(first - 1)
    await database.close()


def kinds(path: Path) -> set[str]:
    """The kinds of findings of `roost db verify` that the reader knows, too."""
    return {finding.kind for finding in findings_in(path)} & COMPARED


def test_each_position_is_that_of_roost(filled) -> None:
    path, held = filled
    reader = Reader(path)
    assert (reader.earliest, reader.head) == (0, max(held))
    assert reader.at(0) == {}
    assert reader.check() == {}
    assert kinds(path) == set()
    for position, consumers in held.items():
        found = {key: fact for key, fact in reader.at(position).items() if key[0] == "allocations"}
        assert found == of_consumers(consumers), position

    asyncio.run(past_fleets(path, 0, max(held)))


@pytest.mark.parametrize("keep", [1, 12])
def test_the_positions_that_are_left_after_a_trim(filled, tmp_path, keep) -> None:
    path = copied(filled[0], tmp_path / "trimmed.db")
    head = Reader(path).head
    states = [Reader(path).at(position) for position in (head - keep, head)]
    trim(path, keep)
    reader = Reader(path)
    assert (reader.earliest, reader.head) == (head - keep, head)
    assert reader.check() == {}
    assert kinds(path) == set()
    assert [reader.at(position) for position in (head - keep, head)] == states
    asyncio.run(past_fleets(path, head - keep, head))


def test_times_are_those_of_the_newest_commit_that_names_the_thing(filled) -> None:
    at: dict[str, float] = {}
    with closing(sqlite3.connect(filled[0])) as connection:
        for committed_at, text in connection.execute(
            "SELECT committed_at, changes FROM commits ORDER BY seq"
        ):
            for change in json.loads(text):
                at[change.get("provider") or change.get("consumer") or ""] = committed_at
        for table in ("resource_providers", "consumers"):
            rows = connection.execute(f"SELECT uuid, changed_at FROM {table}").fetchall()
            assert rows and all(at[uuid] == changed_at for uuid, changed_at in rows)


def test_ids_of_consumers_are_those_of_the_page(filled) -> None:
    """The number of the commit that made the consumer, times 2**24, and its place among those made there."""
    numbers: dict[str, int] = {}
    with closing(sqlite3.connect(filled[0])) as connection:
        for seq, text in connection.execute("SELECT seq, changes FROM commits ORDER BY seq"):
            changes = [change for change in json.loads(text) if change["type"] == "allocations"]
            new = [change["consumer"] for change in changes if change["before"] is None]
            new = [consumer for consumer in dict.fromkeys(new) if consumer not in numbers]
            numbers |= {consumer: seq * 2**24 + place for place, consumer in enumerate(new)}
            gone = {change["consumer"]: change["after"] is None for change in changes}
            numbers = {consumer: each for consumer, each in numbers.items() if not gone.get(consumer)}
        assert dict(connection.execute("SELECT uuid, id FROM consumers")) == numbers


def test_the_commits_have_all_kinds_of_changes(made) -> None:
    """Otherwise the tests of this file would compare less than they say."""
    with closing(sqlite3.connect(made)) as connection:
        texts = [text for (text,) in connection.execute("SELECT changes FROM commits WHERE seq > 1")]
    changes = [change for text in texts for change in json.loads(text)]
    assert {change["type"] for change in changes} == set(TAGS)
    moves = [one for one in changes if one["type"] == "provider" and one["before"] and one["after"]]
    assert any(one["before"]["parent"] != one["after"]["parent"] for one in moves)
    assert any(one["type"] == "provider" and one["after"] is None for one in changes)
    after = [one["after"] for one in changes if one["type"] == "allocations"]
    assert None in after
    assert any(one["group"] for one in after if one)
    assert any(one["assignment"] for one in after if one)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE allocations SET used = used + 1", "state-differs"),
        ("DELETE FROM allocations", "empty-consumer"),
        ("DELETE FROM consumers", "broken-reference"),
        ("UPDATE resource_providers SET parent_id = 99", "broken-reference"),
        ("UPDATE resource_providers SET generation = generation + 1", "state-differs"),
        ("INSERT INTO provider_aggregates SELECT id, 'x' FROM resource_providers LIMIT 1", "state-differs"),
        ("INSERT INTO traits VALUES (9999, 'CUSTOM_UNHEARD_OF')", "unexplained"),
        ("DELETE FROM commits WHERE seq = 20", "commit-gap"),
        ("DELETE FROM commits", "unexplained"),
        ("UPDATE commits SET changes = 'no JSON' WHERE seq = 20", "commit-unreadable"),
        ("""UPDATE commits SET changes = '[{"type":"new","before":1,"after":2}]' WHERE seq = 20""",
         "commit-unreadable"),
        ("UPDATE operator_word SET mark = mark + 1", "state-differs"),
    ],
)  # fmt: skip
def test_damage_is_noticed_as_roost_notices_it(made, tmp_path, statement, kind) -> None:
    path = copied(made, tmp_path / "damaged.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount > 0, f"{statement} changes nothing"
    assert kind in kinds(path)
    assert set(Reader(path).check().values()) == kinds(path)


def test_random_damage_is_noticed_as_roost_notices_it(filled, tmp_path) -> None:
    """One value of one row is changed, or one row deleted, in each of several copies."""
    draw = random.Random(nightly_seed())
    noticed = 0
    for number in range(10):
        path = copied(filled[0], tmp_path / f"{number}.db")
        statement = damage(draw, path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)
        found = {finding.kind for finding in findings_in(path)}
        noticed += bool(found)
        if findings.ASSIGNMENT_UNREADABLE in found:
            with pytest.raises(ValueError):
                Reader(path)
        else:
            assert set(Reader(path).check().values()) == found & COMPARED, statement
    assert noticed > 2


def damage(draw: random.Random, path: Path) -> str:
    """A statement that changes one value, or deletes one row. Times and tokens are left alone."""
    with closing(sqlite3.connect(path)) as connection:
        names = [table.name for table in metadata.sorted_tables if table.name not in UNCHECKED]
        rows = [(name, connection.execute(f"SELECT rowid FROM {name}").fetchall()) for name in names]
    table, rowids = draw.choice([(name, rowids) for name, rowids in rows if rowids])
    [rowid] = draw.choice(rowids)
    columns = [each.name for each in metadata.tables[table].columns if each.name not in UNCHECKED]
    if draw.random() < 0.3:
        return f"DELETE FROM {table} WHERE rowid = {rowid}"
    column = draw.choice(columns)
    number = f"{column} + iif({column} < 1000000, 1, -1)"  # verification cannot load more than 2**31 - 1
    value = f"CASE typeof({column}) WHEN 'text' THEN 'x' WHEN 'null' THEN 'x' ELSE {number} END"
    return f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE rowid = {rowid}"


@pytest.mark.parametrize(
    ("revision", "works_from", "reads"),
    [
        (REVISION, f"{REVISION} 0007", True),
        (REVISION, "0007 0007", True),  # an upgrade that was cut off before it wrote the column
        ("9999", f"9999 {REVISION}", True),
        ("9999", "9999 0007", True),
        ("9999", "9999 9999", False),
        ("9999", f"{REVISION} 0007", False),
        ("9999", None, False),
        ("0007", "0007 0007", False),
    ],
)
def test_tables_of_other_revisions(made, tmp_path, revision, works_from, reads) -> None:
    path = copied(made, tmp_path / "other.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE ledger_schema SET version_num = ?, works_from = ?", (revision, works_from))
    database = Database(f"sqlite:///{path}")
    if reads:
        assert Reader(path).check() == {}
        SCHEMA.check(database)
    else:
        with pytest.raises(Unreadable, match=f"at revision {revision}, this reader knows {REVISION}"):
            Reader(path)
        with pytest.raises((SchemaTooNew, SchemaTooOld)):
            SCHEMA.check(database)
    asyncio.run(database.close())
