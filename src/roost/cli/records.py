"""``roost records``: the scheduler's decisions and their reasons."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from roost.cli.options import as_json, print_json
from roost.model.errors import OperatorError
from roost.model.record import BUILT, PENDING
from roost.records import Retention, RunWithAttempts, Search, SearchableRecords
from roost.records.backend import open_sql_records
from roost.records.jsonl import JsonLinesRecords


@click.command(epilog="Example: roost records --data-dir ./roost-data/up --last 5")
@click.argument("name", required=False, metavar="[REQUEST_OR_INSTANCE]")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Data directory of roost up or roost replay.",
)
@click.option(
    "--last", type=click.IntRange(min=1), default=20, show_default=True, help="Number of runs to read."
)
@click.option("--refused", is_flag=True, help="Show only runs that placed too few instances.")
@as_json
def records(name: str | None, data_dir: Path, last: int, refused: bool, as_json: bool) -> None:
    """List the last runs of the scheduler, or show the runs of one request or instance in full.

    A run in full shows how many hosts each step removed, which hosts were tried, and why an attempt failed.
    Runs appear some milliseconds after their decision.
    """
    found = asyncio.run(_read(data_dir, name, last, refused))
    if name is not None and not found:
        raise OperatorError(f"data directory {data_dir} has no record of a request or an instance {name}")
    if refused and name is not None:
        found = [each for each in found if each.run.refusal is not None]
    if as_json:
        print_json(found)
        return
    console = Console()
    if name is None:
        console.print(_list(found))
    for each in found if name is not None else ():
        console.print(_detailed(each))


async def _read(data_dir: Path, name: str | None, last: int, refused: bool) -> list[RunWithAttempts]:
    backend = await _open(data_dir)
    try:
        if name is None:
            return await backend.last(last, refused)
        by_request = await backend.find(Search(request_id=name), last)
        return by_request or await backend.find(Search(instance=name), last)
    finally:
        await backend.close()


async def _open(data_dir: Path) -> SearchableRecords:
    forever = Retention(0, 0)
    if (data_dir / "records.db").exists():
        return await open_sql_records(f"sqlite:///{data_dir.resolve() / 'records.db'}", forever)
    if (data_dir / "records.jsonl").exists():
        return JsonLinesRecords(data_dir / "records.jsonl", forever)
    raise OperatorError(f"data directory {data_dir} contains neither records.db nor records.jsonl")


def _list(found: list[RunWithAttempts]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("started (UTC)", "request"):
        table.add_column(column, no_wrap=True)
    table.add_column("instances", justify="right")
    table.add_column("outcome", overflow="fold")
    for each in found:
        run = each.run
        table.add_row(
            datetime.fromtimestamp(run.started_at, UTC).strftime("%m-%d %H:%M:%S"),
            Text(run.request_id),
            str(len(run.instances)),
            Text(_outcome(each), style="red" if run.refusal is not None else ""),
        )
    return table


def _detailed(each: RunWithAttempts) -> Group:
    run = each.run
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, value in (
        ("run", run.id),
        ("request", run.request_id),
        ("global request", run.global_request_id or "none"),
        ("project, user", f"{run.project_id}, {run.user_id}"),
        ("instances", ", ".join(run.instances)),
        ("request spec", json.dumps(run.spec)),
        ("started", f"{_time(run.started_at)}, took {(run.finished_at - run.started_at) * 1000:.1f} ms"),
        ("ledger version", "unknown" if run.version is None else str(run.version)),
        ("seed", "unknown" if run.seed is None else str(run.seed)),
        ("outcome", _outcome(each)),
    ):
        facts.add_row(name, Text(value, overflow="fold"))
    steps = Table(box=None, pad_edge=False)
    for column in ("step", "hosts left", "removed"):
        steps.add_column(column, justify="left" if column == "step" else "right")
    before = None
    for step in run.steps:
        removed = "" if before is None or before <= step.left else f"{before - step.left:,}"
        steps.add_row(Text(step.name), f"{step.left:,}", removed)
        before = step.left
    attempts = Table(box=None, pad_edge=False)
    for column in ("at", "instance", "host", "cell", "weight", "result", "reason"):
        attempts.add_column(column, overflow="fold")
    for attempt in each.attempts:
        attempts.add_row(
            _time(attempt.at),
            attempt.instance,
            Text(attempt.host),
            Text(attempt.cell),
            f"{attempt.weight:.3f}",
            attempt.result,
            Text(attempt.reason or ""),
        )
    return Group(facts, "", steps, "", attempts, "")


def _outcome(each: RunWithAttempts) -> str:
    run = each.run
    placed = [attempt for attempt in each.attempts if attempt.result in (PENDING, BUILT)]
    claimed = {attempt.instance for attempt in placed}
    if run.refusal is not None and not claimed:
        return f"refused: {run.refusal}"
    hosts = {attempt.instance: attempt.host for attempt in placed}
    names = sorted(set(hosts.values()))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    rest = "" if run.refusal is None else f"; {run.refusal}"
    return f"{len(claimed)} on {shown}{rest}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
