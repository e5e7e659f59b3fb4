"""``roost bench``: each command measures something small, prints it, and writes valid JSON."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from roost.bench.commands import bench
from roost.bench.mariadb import MARIADB
from roost.bench.postgresql import POSTGRESQL
from support.nova import nova_python
from support.processes import run_roost

QUICK = ("--duration", "0.1", "--rounds", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


def measured(*arguments: str | Path, folder: Path) -> dict[str, Any]:
    """Run a command that must succeed, and return its JSON."""
    answer = run_roost("bench", *arguments, "--dir", folder, "--json")
    assert answer.returncode == 0, answer.stderr
    report: dict[str, Any] = json.loads(answer.stdout)
    assert report["machine"]["cores"]
    assert not report["wrong"]
    return report


@pytest.mark.parametrize("name", sorted(bench.commands))
def test_every_command_has_an_example(name: str):
    command = bench.commands[name]
    assert command.epilog is not None
    assert command.epilog.startswith(f"Example: roost bench {name}")
    with click.Context(command) as context:
        assert command.get_help(context)


def test_candidates(folder: Path):
    report = measured("candidates", "--hosts", "60", "--limit", "5", "--limit", "0", *QUICK, folder=folder)
    rows = {(row["query"], row["limit"]): row for row in report["rows"]}
    assert rows["flat", "5"]["candidates"] == 5
    assert rows["flat", "none"]["candidates"] == 59
    assert rows["8 devices, 6 groups, none", "5"]["candidates"] == 5
    assert all(not row["roost"]["failed"] for row in report["rows"])


def test_claims(folder: Path):
    report = measured("claims", "--hosts", "100", "--clients", "4", *QUICK, folder=folder)
    assert [row["work"] for row in report["rows"]] == ["PUT", "DELETE", "POST of 100", "POST of 1,000"]
    assert all(row["roost"]["per_second"] > 0 and not row["roost"]["failed"] for row in report["rows"])


@pytest.mark.skipif(POSTGRESQL is None, reason="no PostgreSQL here")
def test_agents():
    few = ("--hosts", "3", "--idle", "1", "--singles", "1", "--many", "4")
    with tempfile.TemporaryDirectory(prefix="roost-bench-", dir="/tmp") as reachable:
        Path(reachable).chmod(0o755)  # pytest's folders are closed to PostgreSQL's account
        [row] = measured("agents", *few, folder=Path(reachable))["rows"]
    assert (row["hosts"], row["cells"], row["tls"]) == (3, 1, True)
    assert row["builds_per_second"] > 0 and 0 < row["p50_ms"] <= row["p99_ms"]
    assert row["processor_ms"] > 0


@pytest.mark.skipif(POSTGRESQL is None, reason="no PostgreSQL here")
def test_reshape():
    few = ("--hosts", "4", "--together", "2", "--instances", "4")
    with tempfile.TemporaryDirectory(prefix="roost-bench-", dir="/tmp") as reachable:
        Path(reachable).chmod(0o755)  # pytest's folders are closed to PostgreSQL's account
        [row] = measured("reshape", *few, folder=Path(reachable))["rows"]
    assert (row["hosts"], row["instances"], row["refused"]) == (4, 4, 0)
    assert row["built"] > 0 and row["commits"] >= 4


WITH_NOVA = pytest.mark.skipif(
    MARIADB is None or nova_python() is None, reason="no MariaDB here, or no Nova: run make nova"
)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder of MariaDB's account, which cannot reach those of pytest."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@WITH_NOVA
@pytest.mark.nightly
def test_nova(reachable: Path):
    few = ("--hosts", "60", "--callers", "2", "--nova-python", nova_python())
    rows = measured("nova", *few, *QUICK, folder=reachable)["rows"]
    assert [row["service"] for row in rows] == [
        "nova-scheduler",
        "roost, placement over HTTP",
        "roost, ledger",
    ]
    assert all(row["calls"] >= 2 and 0 < row["p50_ms"] <= row["p99_ms"] for row in rows)
    assert all(row["quicker"] > 0 for row in rows[1:])


@WITH_NOVA
@pytest.mark.nightly
def test_nova_feed(reachable: Path):
    few = ("--hosts", "60", "--numa", "--nova-python", nova_python())
    [row] = measured("nova-feed", *few, "--duration", "6", "--rounds", "1", folder=reachable)["rows"]
    assert (row["hosts"], row["numa"]) == (60, "yes")
    assert row["reports_per_second"] > 0 and row["statements_per_second"] > 0


def test_metrics(folder: Path):
    report = measured("metrics", "--hosts", "60", "--clients", "2", *QUICK, folder=folder)
    assert [(row["work"], row["clients"]) for row in report["rows"]] == [("PUT", 2), ("candidates", 1)]
    for row in report["rows"]:
        assert row["requests"] > 0
        assert row["without_us"] > 0
        assert row["with_us"] > 0
    assert "A scrape has" in report["notes"][0]


def test_contention(folder: Path):
    report = measured(
        "contention", "--hosts", "3", "--clients", "16", "--claims", "300", *QUICK[2:], folder=folder
    )
    [row] = report["rows"]
    assert row["claimed"] >= 90
    assert row["refused"] > 0
    assert row["overfull"] == row["unaccounted"] == 0


def test_start(folder: Path):
    [row] = measured("start", "--hosts", "60", folder=folder)["rows"]
    assert 0 < row["listening_s"] <= row["first_answer_s"]
    assert row["resident_mib"] > 10


def test_past(folder: Path):
    rows = measured("past", "--hosts", "20", "--commits", "4000", "--views", "3", folder=folder)["rows"]
    assert [row["view"] for row in rows[1:]] == [
        "host",
        "consumer",
        "map of five minutes",
        "map of any commit",
    ]
    assert all(0 < row["p50_ms"] <= row["most_ms"] for row in rows[1:])


def test_dashboard(folder: Path):
    few = ("--hosts", "30", "--views", "1", "--viewers", "4", "--commits", "2", "--decisions", "4")
    rows = measured("dashboard", *few, *QUICK, folder=folder)["rows"]
    found = {row["view"]: row for row in rows}
    pages = [row for row in rows if row["first_ms"] is not None]
    assert len(pages) == 16 and pages[-1]["view"] == "slowest page"
    assert all(0 < row["p50_ms"] <= row["most_ms"] for row in pages)
    assert all(found[name]["wire_kb"] > 10 for name in ("first paint, overview", "first paint, map"))
    assert 0 <= found["commit to event"]["most_ms"] < 10_000
    for name in ("streams beside all claims", "streams beside 25 claims/s", "pages beside 25 claims/s"):
        assert found[name]["per_second"] > 0 and found[name]["share"] >= 0
        assert not found[name]["failed"]
    assert found["pages beside 25 claims/s"]["fetched_per_second"] > 0


def test_overload(folder: Path):
    numbers = ("--hosts", "20", "--clients", "4", "--idle", "20", "--silent", "5", "--flood", "4")
    rows = measured("overload", *numbers, *QUICK, folder=folder)["rows"]
    assert [row["beside"] for row in rows] == ["nothing", "idle connections", "and a flood"]
    assert all(row["claims"]["per_second"] > 0 and not row["claims"]["failed"] for row in rows)
    assert rows[-1]["queries"]["requests"] >= 4


def test_limits(folder: Path):
    rows = measured("limits", "--hosts", "60", "--clients", "4", *QUICK, folder=folder)["rows"]
    assert len(rows) == 9
    assert all(row["share"] > 0 for row in rows)


def test_a_table_and_a_file(folder: Path, tmp_path: Path):
    output = tmp_path / "filters.json"
    answer = run_roost(
        "bench", "filters", "--hosts", "60", "--duration", "0.01", "--dir", folder, "--output", output
    )
    assert answer.returncode == 0, answer.stderr
    assert "Python loop ms" in answer.stdout
    assert json.loads(output.read_text())["question"] == "filters"


def test_results_are_put_into_a_page(tmp_path: Path, folder: Path):
    results = tmp_path / "results"
    results.mkdir()
    page = tmp_path / "page.md"
    page.write_text("<!-- bench filters -->\n<!-- /bench -->\n")
    answer = run_roost("bench", "render", results, page)
    assert (answer.returncode, answer.stderr) == (1, f"roost: not in {results}: filters\n")
    run_roost(
        "bench", "filters", "--hosts", "60", "--duration", "0.01", "--dir", folder,
        "--output", results / "filters.json",
    )  # fmt: skip
    assert run_roost("bench", "render", results, page).returncode == 0
    assert "| 60 | 59 |" in page.read_text()
    (results / "filters.png").write_bytes(b"a picture")
    assert run_roost("bench", "render", results, page).returncode == 0
    assert "![filters](images/filters.png)" in page.read_text()
    assert (tmp_path / "images" / "filters.png").read_bytes() == b"a picture"


def test_a_database_of_another_kind_is_refused(tmp_path: Path):
    answer = run_roost("bench", "claims", "--database", "mysql://x/y", "--dir", tmp_path)
    assert answer.returncode == 2
    assert "PostgreSQL" in answer.stderr
