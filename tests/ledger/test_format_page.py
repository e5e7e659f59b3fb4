"""docs/format.md names all that is on disk, and its example and its queries are real."""

import asyncio
import itertools
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ledger import format_reader
from ledger.format_reader import REVISION, Reader
from roost.ledger import SCHEMA, Ledger, findings
from roost.ledger.tables import metadata
from roost.model.allocation import Consumer
from roost.model.assignment import AssignedCell, AssignedDevices, Assignment
from roost.model.change import ProviderFacts
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.storage import Database
from support.ledger_format import COMPARED, TAGS, copied
from support.ledgers import run

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text()


def ran(*arguments: object) -> tuple[int, str]:
    """Run the reader without Roost and without any other package. Returns its status and output."""
    command = [sys.executable, "-I", "-S", format_reader.__file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


HOST, CONSUMER = "6f1d0000-0000-4000-8000-000000000001", "c0de0000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Path:
    """The database of the page's example."""
    path = tmp_path_factory.mktemp("example") / "e.db"
    allocations = {HOST: {"VCPU": 4}}
    claimed = ConsumerWrite(
        consumer=CONSUMER, allocations=allocations, project_id="p", user_id="u", consumer_type="INSTANCE"
    )

    async def work() -> None:
        times = itertools.count(1_790_000_000.0, 0.5)
        database = Database(f"sqlite:///{path}")
        ledger = await Ledger.open(database, clock=lambda: next(times))
        inventories = {"VCPU": Inventory(16, allocation_ratio=2.0)}
        await run(ledger, CreateProvider(HOST, "host-1"), SetInventories(HOST, inventories))
        await run(ledger, WriteAllocations((claimed,)))
        await ledger.close()
        await database.close()

    asyncio.run(work())
    return path


def test_the_example_of_the_page(example) -> None:
    page = re.sub(r"\s", "", PAGE)
    with closing(sqlite3.connect(example)) as connection:
        for table in ("ledger_schema", "resource_providers", "inventories", "consumers", "allocations"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                shown = "|".join("" if value is None else str(value) for value in row)
                assert f"    {shown}\n" in PAGE, table
        for seq, at, text in connection.execute("SELECT seq, committed_at, changes FROM commits"):
            assert re.search(rf"^    {seq}\|[0-9a-f]{{20}}-{seq}\|{at}$", PAGE, re.MULTILINE)
            assert seq == 1 or f"```json{text}```" in page
    status, shown = ran(example, 3)
    lines = [line for line in shown.splitlines() if HOST in line]
    assert (status, len(lines)) == (0, 3)
    assert all(re.sub(r"\s", "", line[:100]) in page for line in lines)
    assert ran(example) == (0, f"history {Reader(example).history}, positions 0 to 4\n")


def test_the_reader_says_what_is_wrong(example, tmp_path) -> None:
    path = copied(example, tmp_path / "damaged.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE allocations SET used = 5")
    status, shown = ran(path)
    assert (status, shown.splitlines()[1:]) == (1, [f"state-differs: allocations {CONSUMER}"])


def section(heading: str) -> str:
    """The text under a heading of the page, up to the next one."""
    [text] = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return text


def code(text: str) -> set[str]:
    """The names that a text has as code, those in JSON too."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))


def test_the_page_names_each_table_and_column() -> None:
    under = {"commits": "Commits", "database_identity": "Version and identity"}
    for table in metadata.sorted_tables:
        text = section(under.get(table.name, f"`{table.name}`"))
        rows = code(" ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|")))
        assert rows >= {column.name for column in table.columns}, table.name
    assert f"This page describes `{SCHEMA.newest}`" in PAGE
    assert SCHEMA.newest == REVISION


def test_the_page_names_each_change_and_member() -> None:
    rows = {
        line.split("|")[1].strip(" `"): code(line)
        for line in section("Kinds of changes").splitlines()
        if "|" in line
    }
    for tag, kind in TAGS.items():
        assert rows[tag] | {"before", "after"} >= set(kind.__struct_fields__), tag
    inside = {
        "Kinds of changes": (Inventory, ProviderFacts),
        "The consumer in a change": (Consumer,),
        "Assignments": (Assignment, AssignedCell, AssignedDevices),
    }
    for heading, structs in inside.items():
        for struct in structs:
            assert code(section(heading)) >= set(struct.__struct_fields__), struct


def test_the_page_names_each_kind_of_finding() -> None:
    kinds = {value for name, value in vars(findings).items() if name.isupper()}
    rows = re.findall(
        r"`([a-z-]+)`",
        " ".join(line.split("|")[1] for line in section("What holds").splitlines() if "|" in line),
    )
    assert sorted(rows) == sorted(kinds)
    checked = re.findall(r"^\| `([a-z-]+)` \|.*\| yes \|$", section("What holds"), re.MULTILINE)
    assert set(checked) == COMPARED


def test_the_queries_for_followers_begin_at_the_position(example) -> None:
    identity, newer = re.findall(r"^    (SELECT .*);$", section("Following"), re.MULTILINE)
    with closing(sqlite3.connect(example)) as connection:
        assert "{}.{}".format(*connection.execute(identity).fetchone()) == Reader(example).history
        [token] = connection.execute("SELECT writer FROM commits WHERE seq = 2").fetchone()
        first, *others = connection.execute(newer, {"position": 2}).fetchall()
        assert first[:2] == (2, token)
        state = Reader(example).at(2)
        for _, _, text in others:
            for change in json.loads(text):
                state |= format_reader.facts(change, "after")
        assert state == Reader(example).at(4)
        assert [seq for seq, _, _ in connection.execute(newer, {"position": 0})] == [1, 2, 3, 4]
