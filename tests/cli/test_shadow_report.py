"""`roost nova-scheduler report`: numbers, differences, exit status."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from roost.cli.shadow_report import report
from roost.model.errors import OperatorError
from roost.nova.shadow.comparison import Comparison
from roost.nova.shadow.comparison_store import ComparisonStore
from roost.nova.shadow.tables import SCHEMA
from roost.storage import Database

SAME = Comparison(run="run-1", instance="i", at=1000.0, outcome="same", seconds=0.01)
TIE = Comparison(run="run-2", instance="i", at=2000.0, outcome="tie", seconds=0.02)
OTHER = Comparison(
    run="run-3", instance="i", at=3000.0, outcome="other", cause="RAMWeigher", reason="why", seconds=0.03
)
LATE = Comparison(run="run-4", instance="i", at=4000.0, outcome="other", cause="RAMWeigher", late=True)
FAILED = Comparison(run="run-5", instance="i", at=5000.0, outcome="failed", cause="PlacementUnavailable")


def reported(folder: Path, *found: Comparison, since: str | None = None) -> Result:
    url = f"sqlite:///{folder / 'bridge.db'}"

    async def put() -> None:
        database = Database(url)
        SCHEMA.prepare(database)
        await ComparisonStore(database, lambda: 6000.0).put(found)
        await database.close()

    asyncio.run(put())
    arguments = ["--set", f"nova_bridge.connection={url}", *(("--since", since) if since else ())]
    return CliRunner().invoke(report, arguments, env={"COLUMNS": "200"})


def test_all_agree(tmp_path: Path) -> None:
    result = reported(tmp_path, SAME, TIE)
    assert result.exit_code == 0
    assert "2 instances were compared: 100.0 % agree" in result.output
    assert "difference" not in result.output


def test_differences_have_cause_reason_and_run(tmp_path: Path) -> None:
    result = reported(tmp_path, SAME, OTHER, LATE, FAILED)
    assert result.exit_code == 1
    assert "3 instances were compared: 33.3 % agree" in result.output
    [line] = [line for line in result.output.splitlines() if line.startswith("other") and "run-4" in line]
    assert line.split()[:4] == ["other", "RAMWeigher", "2", "1"]
    assert "PlacementUnavailable" in result.output


def test_late_differences_alone_are_no_failure(tmp_path: Path) -> None:
    assert reported(tmp_path, SAME, LATE).exit_code == 0


def test_since(tmp_path: Path) -> None:
    result = reported(tmp_path, SAME, OTHER, since="1970-01-01T00:40:00")
    assert "1 instances were compared: 0.0 % agree" in result.output
    nothing = reported(tmp_path, since="1970-01-02")
    assert (nothing.exit_code, nothing.output) == (1, "no call was compared\n")


def test_json(tmp_path: Path) -> None:
    reported(tmp_path, SAME, OTHER)
    url = f"sqlite:///{tmp_path / 'bridge.db'}"
    result = CliRunner().invoke(report, ["--set", f"nova_bridge.connection={url}", "--json"])
    found = json.loads(result.output)
    assert (found["instances"], found["agreement"]) == (2, 0.5)
    assert found["differences"][0]["examples"][0]["run"] == "run-3"


def test_a_database_before_the_first_start_of_shadow_mode(tmp_path: Path) -> None:
    asyncio.run(Database(url := f"sqlite:///{tmp_path / 'bridge.db'}").close())
    result = CliRunner().invoke(report, ["--set", f"nova_bridge.connection={url}"])
    assert (result.exit_code, result.output) == (1, "no call was compared\n")


def test_without_a_database() -> None:
    with pytest.raises(OperatorError, match="nova_bridge"):
        CliRunner().invoke(report, [], catch_exceptions=False)
