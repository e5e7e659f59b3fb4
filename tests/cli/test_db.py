"""``roost db``: what each command prints, and its exit status."""

import asyncio
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.cli.main import main
from roost.conductor.verify import verify_instances
from roost.ledger import SCHEMA as LEDGER
from roost.model.instance import ACTIVE, ASSIGNED, BuildRequest, Instance
from roost.model.spec import Flavor, RequestSpec
from roost.placement.commands.names import AddResourceClass
from roost.state.api_database.build_requests import AcceptRequest, FinishRequest, MapInstances, RequestKey
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database import Cell
from roost.storage import Database, Schema
from support.ledgers import claim, host, opened, run

ROLE_OF = {"conductor": "api"}
"""The role that makes a schema, where the two have different names."""


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def soon_settled(monkeypatch):
    monkeypatch.setattr("roost.conductor.verify.SETTLE_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    """Standard error is compared, however slow the machine is."""
    monkeypatch.setattr("roost.cli.progress.AFTER_SECONDS", 1e9)


@pytest.fixture
def roost(monkeypatch, capsys):
    """Runs the command line."""

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr("sys.argv", ["roost", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Answer(int(end.value.code or 0), out, err)

    return call


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def placement(tmp_path) -> Path:
    """A database with the ledger only."""

    async def fill() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            await run(ledger, *host("node-1", VCPU=8), *host("node-2", VCPU=8))
            await run(ledger, claim("built", "node-1", VCPU=1))

    asyncio.run(fill())
    return tmp_path / "api.db"


@pytest.fixture
def region(placement) -> Path:
    """A whole region: a cell with one instance that is built, and one whose request waits."""

    async def fill() -> None:
        api, cell = Database(url(placement)), Database(url(placement.with_name("cell1.db")))
        requests = Requests(api)
        await requests.map_cells({"cell1": str(cell.url)})
        spec = RequestSpec(project_id="p", user_id="u", flavor=Flavor("small", 1, 1))
        done = BuildRequest(request_id="req-1", spec=spec, instances=("built",), min_count=1)
        await api.write(AcceptRequest(done, 1.0, "A"))
        await api.write(MapInstances("req-1", "A", 1, {"built": "cell1"}))
        await api.write(FinishRequest(RequestKey("req-1", "A", 1)))
        waiting = BuildRequest(request_id="req-2", spec=spec, instances=("waiting",), min_count=1)
        await api.write(AcceptRequest(waiting, 1.0))
        await Cell("cell1", cell).add([instance("built", ACTIVE)])
        for database in (api, cell):
            await database.close()
        async with opened(placement) as [ledger]:
            await ledger.execute(claim("waiting", "node-2", VCPU=1))

    asyncio.run(fill())
    return placement


def instance(uuid: str, state: str, node: str = "node-1") -> Instance:
    return Instance(
        uuid=uuid,
        request_id="req-1",
        run="run",
        project_id="p",
        user_id="u",
        flavor="small",
        state=state,
        host=f"host of {node}",
        node=node,
        attempt=1,
    )


def test_verify_is_silent_about_what_is_right(roost, placement, region):
    verified = roost("db", "verify", "--database", url(region))
    assert (verified.status, verified.err) == (0, "")
    says = r"verified: [\d,]+ commits and [\d,]+ allocations agree with the tables\n"
    assert re.fullmatch(says, verified.out)


def test_verify_of_a_ledger_alone(roost, placement):
    answer = roost("db", "verify", "--database", url(placement), "--json")
    document = json.loads(answer.out)
    assert (answer.status, document["findings"], document["not_checked"]) == (0, [], [])
    assert document["verified"]["commits"] > 0


def test_verify_lists_every_difference(roost, placement):
    spoil(
        placement,
        "UPDATE resource_providers SET generation = 9",
        "UPDATE allocations SET consumer_id = 7",
        "DELETE FROM consumers",
    )
    answer = roost("db", "verify", "--database", url(placement), "--json")
    assert answer.status == 1
    found = {(one["kind"], one["subject"]) for one in json.loads(answer.out)["findings"]}
    assert found == {
        ("broken-reference", "consumer with id 7"),
        ("state-differs", "generation of resource provider node-1"),
        ("state-differs", "generation of resource provider node-2"),
        ("state-differs", "consumer built"),
    }


def test_verify_prints_a_table_of_differences(roost, placement):
    spoil(placement, "UPDATE inventories SET total = 99")
    answer = roost("db", "verify", "--database", url(placement))
    assert answer.status == 1
    assert "state-differs" in answer.out
    assert "inventories of resource provider node-1" in answer.out
    assert answer.out.endswith("2 difference(s) found\n")


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("DELETE FROM instances", ("leaked-claim", "instance built")),
        ("UPDATE instances SET state = 'error'", ("leaked-claim", "instance built")),
        ("UPDATE instances SET node = 'node-2'", ("wrong-host", "instance built")),
        ("UPDATE instances SET uuid = 'other'", ("missing-claim", "instance other")),
    ],
)
def test_verify_compares_claims_with_instances(roost, region, statement, finding):
    spoil(region.with_name("cell1.db"), statement)
    answer = roost("db", "verify", "--database", url(region), "--json")
    assert answer.status == 1
    assert finding in {(one["kind"], one["subject"]) for one in json.loads(answer.out)["findings"]}


def test_verify_finds_a_claim_whose_request_is_finished(roost, region):
    spoil(region, "DELETE FROM build_requests")
    answer = roost("db", "verify", "--database", url(region), "--json")
    findings = {(one["kind"], one["subject"]) for one in json.loads(answer.out)["findings"]}
    assert findings == {("leaked-claim", "instance waiting"), ("missing-instance", "instance waiting")}


def test_verify_passes_over_what_was_only_under_way(region):
    """The second comparison finds the instance that the first one missed."""
    cell = region.with_name("cell1.db")
    spoil(region, "DELETE FROM build_requests", "UPDATE instance_mappings SET cell = 'cell1'")
    settled = []

    async def settle() -> None:
        late = Database(url(cell))
        await Cell("cell1", late).add([instance("waiting", ASSIGNED, "node-2")])
        await late.close()
        settled.append(True)

    async def verify():
        database = Database(url(region), read_only=True)
        try:
            return await verify_instances(database, settle)
        finally:
            await database.close()

    assert asyncio.run(verify()) == ([], [])
    assert settled == [True]


@pytest.mark.parametrize("broken", ["missing", "text", "other"])
def test_verify_says_which_cell_it_could_not_check(roost, region, broken):
    cell = region.with_name("cell1.db")
    cell.unlink()
    if broken == "text":
        cell.write_text("not a database" * 100)
    if broken == "other":
        spoil(cell, "CREATE TABLE something (x)")
    answer = roost("db", "verify", "--database", url(region))
    assert answer.status == 2
    assert "agree with the tables" in answer.out
    assert answer.err.startswith("roost: cell cell1 could not be checked: ")
    assert answer.err.count("\n") == 1
    assert cell.exists() == (broken != "missing")


def test_verify_lists_differences_though_a_cell_could_not_be_checked(roost, region):
    region.with_name("cell1.db").unlink()
    spoil(region, "UPDATE resource_providers SET generation = 9")
    answer = roost("db", "verify", "--database", url(region), "--json")
    document = json.loads(answer.out)
    assert answer.status == 1
    assert len(document["findings"]) == 2
    assert [one["cell"] for one in document["not_checked"]] == ["cell1"]


@pytest.mark.parametrize("command", ["verify", "version", "trim"])
def test_a_missing_file_is_not_made(roost, tmp_path, command):
    answer = roost("db", command, "--database", url(tmp_path / "missing.db"))
    assert answer.status == 2
    assert (
        answer.err
        == f"roost: cannot open database {url(tmp_path)}/missing.db: there is no file {tmp_path}/missing.db\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["verify", "trim"])
def test_an_empty_database_names_the_command_to_run(roost, tmp_path, command):
    spoil(tmp_path / "empty.db", "CREATE TABLE x (y)")
    answer = roost("db", command, "--database", url(tmp_path / "empty.db"))
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "run 'roost db upgrade --database" in answer.err


@pytest.mark.parametrize("command", ["verify", "trim"])
@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("cell", "a cell's database"),
        ("records", "a records database"),
        ("conductor", "a conductor's database"),
    ],
)
def test_a_database_of_another_kind_is_named_and_no_upgrade_is_advised(roost, tmp_path, command, role, kind):
    path = tmp_path / "other.db"
    assert roost("db", "upgrade", "--database", url(path), "--role", ROLE_OF.get(role, role)).status == 0
    if role == "conductor":
        spoil(path, "DROP TABLE ledger_schema")
    answer = roost("db", command, "--database", url(path))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"roost: database {url(path)} is {kind} and has no ledger: name the database of the Placement API\n"
    )


@pytest.mark.parametrize("command", ["verify", "version", "upgrade", "trim"])
def test_what_is_no_database_is_one_line(roost, tmp_path, command):
    (tmp_path / "text").write_text("not a database" * 100)
    answer = roost("db", command, "--database", url(tmp_path / "text"))
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert str(tmp_path / "text") in answer.err


def test_upgrade_makes_an_api_database(roost, tmp_path):
    path = tmp_path / "new.db"
    answer = roost("db", "upgrade", "--database", url(path), "--json")
    assert answer.status == 0
    assert json.loads(answer.out) == [
        {"schema": "ledger", "from": None, "to": LEDGER.newest},
        {"schema": "conductor", "from": None, "to": CONDUCTOR.newest},
    ]
    again = roost("db", "upgrade", "--database", url(path))
    assert again.status == 0
    revisions = re.findall(r"\b0\d{3}\b", again.out)
    assert Counter(revisions) == Counter([LEDGER.newest] * 2 + [CONDUCTOR.newest] * 2)
    assert roost("db", "verify", "--database", url(path)).status == 0


def test_upgrade_adds_what_a_placement_database_lacks(roost, placement):
    # What `roost serve` has made is healthy: it needs no tables of the conductors.
    assert roost("db", "version", "--database", url(placement)).status == 0
    answer = roost("db", "upgrade", "--database", url(placement), "--json")
    assert [step["from"] for step in json.loads(answer.out)] == [LEDGER.newest, None]
    assert roost("db", "version", "--database", url(placement)).status == 0


def test_upgrade_keeps_a_cell_a_cell(roost, tmp_path):
    path = tmp_path / "cell.db"
    for arguments in (("--role", "cell"), ()):
        answer = roost("db", "upgrade", "--database", url(path), "--json", *arguments)
        assert [step["schema"] for step in json.loads(answer.out)] == ["cell"]
    answer = roost("db", "version", "--database", url(path), "--json")
    assert json.loads(answer.out) == [
        {"schema": "cell", "database": CELL.newest, "program": CELL.newest, "rolling": None}
    ]


def test_version_says_whether_an_upgrade_is_rolling_and_upgrade_can_insist_on_it(
    roost, tmp_path, monkeypatch
):
    path = tmp_path / "cell.db"
    assert roost("db", "upgrade", "--database", url(path), "--role", "cell").status == 0
    works_from = CELL.works_from(CELL.newest)
    before = CELL.revisions[-2]
    spoil(path, f"UPDATE cell_schema SET version_num = '{before}'")
    with monkeypatch.context() as patched:
        # As if the newest revision left no earlier program working.
        patched.setattr(Schema, "works_from", lambda schema, revision: revision)
        answer = roost("db", "version", "--database", url(path))
        assert answer.status == 1
        assert re.search(rf"cell\W+{before}\W+{CELL.newest}\W+no", answer.out)
        answer = roost("db", "upgrade", "--database", url(path), "--rolling")
    assert (answer.status, answer.out) == (2, "")
    assert f"processes that work with cell revision {before} do not work with {CELL.newest}" in answer.err
    spoil(path, f"UPDATE cell_schema SET version_num = '{works_from}'")
    [row] = json.loads(roost("db", "version", "--database", url(path), "--json").out)
    assert row["rolling"] is (None if works_from == CELL.newest else True)
    assert roost("db", "upgrade", "--database", url(path), "--rolling").status == 0
    assert roost("db", "version", "--database", url(path)).status == 0


@pytest.mark.parametrize("command", ["upgrade", "verify", "trim"])
def test_a_newer_database_is_left_alone(roost, placement, command):
    spoil(placement, "UPDATE ledger_schema SET version_num = '9999'")
    answer = roost("db", command, "--database", url(placement))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"roost: database {url(placement)} is at ledger revision 9999, newer than this program, "
        f"which knows up to {LEDGER.newest}: run a newer Roost\n"
    )


@pytest.mark.parametrize("command", ["upgrade", "verify", "trim"])
def test_a_database_of_before_the_first_revision_is_left_alone(roost, placement, command):
    spoil(placement, "UPDATE ledger_schema SET version_num = '0006'")
    answer = roost("db", command, "--database", url(placement))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"roost: database {url(placement)} is at ledger revision 0006, and this program upgrades from "
        f"{LEDGER.oldest} on: upgrade it first by 'roost db upgrade' of the Roost of commit 39efe71\n"
    )


def test_upgrade_changes_nothing_if_one_schema_is_newer(roost, region):
    spoil(
        region,
        "UPDATE conductor_schema SET version_num = '9999'",
        "DROP TABLE ledger_schema",
    )
    assert roost("db", "upgrade", "--database", url(region)).status == 2
    answer = roost("db", "version", "--database", url(region), "--json")
    assert answer.status == 1
    assert [row["database"] for row in json.loads(answer.out)] == [None, "9999"]


def test_trim_keeps_the_newest(roost, placement):
    async def fill() -> None:
        async with opened(placement) as [ledger]:
            await run(ledger, *(AddResourceClass(f"CUSTOM_{number}") for number in range(10)))

    asyncio.run(fill())
    answer = roost("db", "trim", "--database", url(placement), "--keep", 5, "--json")
    assert (answer.status, json.loads(answer.out)) == (0, {"removed": 11})
    assert roost("db", "trim", "--database", url(placement), "--days", 0).out == "4 commit(s) removed\n"
    assert roost("db", "trim", "--database", url(placement), "--days", 0).out == "0 commit(s) removed\n"
    assert roost("db", "verify", "--database", url(placement)).status == 0


@pytest.mark.parametrize("command", ["verify", "upgrade", "version", "trim"])
def test_help_has_an_example(roost, command):
    answer = roost("db", command, "--help")
    assert answer.status == 0
    assert f"Example: roost db {command} --database" in answer.out
