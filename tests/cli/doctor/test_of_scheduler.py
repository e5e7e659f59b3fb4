"""`roost doctor --scheduler`: placement over HTTP, hosts, cells, journal and records are looked at."""

import asyncio
from pathlib import Path

import httpx
import pytest

from roost.bench.loopback import free_port
from roost.cli.doctor import scheduler
from roost.cli.doctor.check import Deployment, run_checks
from roost.cli.listen_options import ListenOptions
from roost.placement.client import HttpPlacement
from roost.process.option_source import Setting, Source
from roost.records.tables import SCHEMA as RECORDS
from roost.scheduler.nodes.journal import JournalWriter
from roost.scheduler.nodes.table import NodeTable
from roost.server.workers.listeners import Address
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.storage import Database
from roost.web.auth.credentials import FixedCredentials
from support.serving import Serving

ALONE = "scheduler.hosts_from_placement=true"


def found(*settings: str, database: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """Level and text of what each check finds."""
    chosen = tuple(map(Setting.parse, ("api.auth_strategy=noauth2", *settings)))
    listening = ListenOptions(Address("127.0.0.1", free_port()), None)
    deployment = Deployment(Source((), chosen), listening, database, schedules=True)
    said: dict[str, list[tuple[str, str]]] = {}
    for each in run_checks(scheduler.CHECKS, deployment):
        said.setdefault(each.check, []).append((each.level, each.says))
    return said


def test_placement_over_http(tmp_path: Path) -> None:
    serving = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log")
    over = ("placement.auth_type=admin_token", "placement.token=admin")
    records = f"records.connection=sqlite:///{tmp_path / 'records.db'}"
    try:
        said = found(ALONE, records, *over, f"placement.endpoint={serving.url}")
        assert said["scheduler"][0][0] == "ok"
        assert said["placement over HTTP"] == [
            ("ok", "placement answers, accepts the token, and has microversion 1.39")
        ]
        assert "no node journal" in said["hosts"][0][1]
        refused = found(ALONE, *over[:1], "placement.token=user:p", f"placement.endpoint={serving.url}")
        assert refused["placement over HTTP"][0][0] == "fail"
    finally:
        serving.end()
    [(level, text)] = found(ALONE, *over, f"placement.endpoint={serving.url}")["placement over HTTP"]
    assert (level, "ConnectError" in text) == ("fail", True)


def test_a_placement_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"versions": [{"min_version": "1.0", "max_version": "1.35"}]})

    client = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    older = HttpPlacement(FixedCredentials("http://placement", "admin"), client=client)
    monkeypatch.setattr(HttpPlacement, "configured", lambda source: older)
    assert found(ALONE)["placement over HTTP"] == [
        ("fail", "placement has microversions up to 1.35, and the scheduler needs 1.36 at least")
    ]


@pytest.mark.parametrize("kept", [False, True])
def test_hosts_of_cells_and_records(tmp_path: Path, kept: bool) -> None:
    api, cell, records = (f"sqlite:///{tmp_path / name}.db" for name in ("api", "cell1", "records"))

    async def make() -> None:
        database = Database(api)
        CONDUCTOR.prepare(database)
        await Requests(database).map_cells({"cell0": cell, "cell1": cell})
        if kept:
            journal = JournalWriter(database, NodeTable())
            await journal.write(1.0)
            await journal.close()
            for url, schema in ((cell, CELL), (records, RECORDS)):
                other = Database(url)
                schema.prepare(other)
                await other.close()
        await database.close()

    asyncio.run(make())
    said = found(f"api_database.connection={api}", f"records.connection={records}", database=api)
    assert said["placement over HTTP"][0][0] == "skip"
    levels = [level for level, _ in said["hosts"]]
    texts = " ".join(text for _, text in said["hosts"])
    if kept:
        assert levels == ["ok", "ok"]
        assert "the hosts of cell1 can be read" in texts
        assert said["records"][0] == ("ok", f"runs are recorded in {records}")
    else:
        assert levels == ["fail", "warn"]
        assert "cell1" in texts
        assert "no process has written a node journal" in texts
        assert said["records"][0][0] == "fail"


def test_options_that_cannot_work() -> None:
    [(level, text)] = found(ALONE, "filter_scheduler.enabled_filters=No")["scheduler"]
    assert (level, "No" in text) == ("fail", True)
