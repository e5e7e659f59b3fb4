"""`roost doctor --conductor` and `--cell-conductor`: databases, revisions and services are looked at."""

import asyncio
from pathlib import Path

from roost.bench.loopback import free_port
from roost.cli.doctor import conductor, configuration
from roost.cli.doctor.check import Deployment, DoctorVerdict, run_checks
from roost.cli.listen_options import ListenOptions
from roost.model.node import NodeReport
from roost.process.option_source import Setting, Source
from roost.server.workers.listeners import Address
from roost.state.api_database.cell_mappings import CellMapping, write_cell_mappings
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database.nodes import keep_reports
from roost.storage import Database, Schema
from support.programs import write_config


def deployment(config: Path, *settings: str, cell: str | None = None) -> Deployment:
    source = Source((str(config),), tuple(map(Setting.parse, settings)))
    listening = ListenOptions(Address("127.0.0.1", free_port()), None)
    return Deployment(source, listening, schedules=True, cell=cell)


def found(config: Path, *settings: str, cell: str | None = None) -> dict[str, list[tuple[str, str, str]]]:
    """Level, text and advice of what each check finds."""
    said: dict[str, list[tuple[str, str, str]]] = {}
    for each in run_checks(conductor.CHECKS, deployment(config, *settings, cell=cell)):
        said.setdefault(each.check, []).append((each.level, each.says, each.change))
    return said


def made(path: Path, schema: Schema, *mappings: CellMapping) -> None:
    database = Database(f"sqlite:///{path}")
    schema.prepare(database)
    if mappings:
        database.write_now(write_cell_mappings(mappings))
    asyncio.run(database.close())


def test_databases_of_a_conductor(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    [(level, _, change)] = found(config)["conductors' databases"]
    assert (level, change) == ("fail", "start the API database, or correct [api_database] connection")
    made(tmp_path / "api.db", CONDUCTOR, CellMapping("cell1", "cell_cell1"), CellMapping("x", "cell_x"))
    made(tmp_path / "cell0.db", CELL)
    made(tmp_path / "cell1.db", CELL)
    said = found(config)
    assert said["conductor"] == [("ok", "the conductor's options are valid", "")]
    assert [(level, says) for level, says, _ in said["conductors' databases"]] == [
        ("ok", "the API database names 2 cells"),
        ("ok", "the hosts of cell0 can be read"),
        ("ok", "the hosts of cell1 can be read"),
        ("fail", "x: the database of cell x is not configured: set connection in [cell_x]"),
    ]
    assert said["scheduler over HTTP"][0][0] == "skip"


def test_databases_of_a_cell_conductor(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    made(tmp_path / "api.db", CONDUCTOR)
    made(tmp_path / "cell1.db", CELL)
    assert found(config, cell="cell1")["conductors' databases"] == [
        ("ok", "the hosts of cell1 can be read", ""),
        ("ok", "the API database names 0 cells", ""),
        ("warn", "the API database does not know the cell cell1", "run 'roost cell add cell1'"),
    ]
    assert "set connection in [cell_y]" in found(config, cell="y")["conductor"][0][1]


def test_hosts_that_are_not_reshaped_are_told(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    made(tmp_path / "api.db", CONDUCTOR, CellMapping("cell1", "cell_cell1"))
    made(tmp_path / "cell0.db", CELL)
    made(tmp_path / "cell1.db", CELL)
    reason = "the node is not reshaped, and stays as it was: consumer x holds 3 VGPU"
    reports = [
        NodeReport(host=f"h{n}", node=f"node-{n}", cell="", refused=reason if n else None) for n in range(3)
    ]
    database = Database(f"sqlite:///{tmp_path / 'cell1.db'}")
    database.write_now(keep_reports(tuple(reports)))
    asyncio.run(database.close())
    [told] = [each for each in found(config)["conductors' databases"] if each[0] == "warn"]
    assert told == (
        "warn",
        f"cell1: not all that hosts report is taken: of h1: {reason} (2 hosts in all)",
        "run 'roost host show h1', and correct it on the host",
    )


def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    service = f"scheduler_service.endpoint=http://127.0.0.1:{free_port()}"
    chosen = ("conductor.use_scheduler_service=true", "scheduler_service.auth_type=none", service)
    [(level, says, change)] = found(config, *chosen)["scheduler over HTTP"]
    assert (level, change) == ("fail", "start the scheduler, or correct [scheduler_service]")
    assert "ConnectError" in says


def test_a_file_of_tokens_that_others_may_read_is_named(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text("")
    tokens.chmod(0o644)
    config = write_config(tmp_path, api=f"auth_strategy = tokens\ntokens_file = {tokens}")
    config.chmod(0o600)
    verdicts = list(configuration.check_permissions(deployment(config)))
    says = f"{tokens} has mode 644: every user of this machine may read it"
    assert DoctorVerdict("warn", says, f"chmod o-rwx {tokens}") in verdicts
