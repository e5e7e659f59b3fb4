"""``roost records``: the scheduler's decisions and their reasons."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from roost.cli.bars import bar_of
from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.numbers import WholeNumber
from roost.cli.output import as_json, console, output, print_facts, print_json, print_table, utc
from roost.cli.reasons_text import reasons_text, weights_table
from roost.cli.record_sources import RecordSource, opened
from roost.model.errors import OperatorError
from roost.model.record import BUILT, PENDING, RESULTS, Run
from roost.records import RunWithAttempts, Search

_FORMS = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")
EXAMPLES = "2026-11-26, 2026-11-26T08:00 or 2026-11-26T08:00:30"


class TimeParameter(click.DateTime):
    """A date, or a date with a time."""

    name = "time"

    def __init__(self) -> None:
        super().__init__(_FORMS)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the word that stands for the value in help texts."""
        return "TIME"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time. Raises `BadParameter`, which names the value and the expected form."""
        try:
            found: datetime = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no time: write it as {EXAMPLES}", param, ctx)
        return found


@click.command(epilog="Example: roost records --data-dir ./roost-data/up --last 5")
@click.argument("name", required=False, metavar="[REQUEST_OR_INSTANCE_OR_RUN]")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Data directory of roost up or roost replay.  [default: what the configuration names]",
)
@click.option(
    "--config-file",
    type=click.Path(path_type=Path),
    help="A file whose section [records] names the records.",
)
@click.option("--archive", type=click.Path(path_type=Path), help="A file of roost archive-records.")
@click.option(
    "--last", type=WholeNumber(min=1), default=20, show_default=True, help="Number of runs to read."
)
@click.option("--refused", is_flag=True, help="Show only runs that placed too few instances.")
@click.option("--host", help="Only runs with an attempt on this host.")
@click.option(
    "--result", type=click.Choice(RESULTS), help="Only runs with an attempt of this result (on --host)."
)
@click.option("--project", help="Only runs of this project.")
@click.option("--user", help="Only runs of this user.")
@click.option(
    "--since",
    type=TimeParameter(),
    help="Only runs that started at this time or later, UTC, as 2026-11-26T08:00.",
)
@click.option("--until", type=TimeParameter(), help="Only runs that started before this time.")
@as_json
@connected_to("scheduler")
def records(
    name: str | None,
    data_dir: Path | None,
    config_file: Path | None,
    connection: ServiceConnection,
    archive: Path | None,
    last: int,
    refused: bool,
    host: str | None,
    result: str | None,
    project: str | None,
    user: str | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """List the last runs of the scheduler, or show the runs of one request, instance or run in full.

    A run in full shows how many hosts each step removed, which hosts were tried, what their weights are made
    of, and why an attempt failed; of a refusal the nearest misses, and which change would be enough.
    Runs appear some milliseconds after their decision. Times are UTC.
    """
    search = Search(
        refused=refused,
        host=host,
        result=result,
        project_id=project,
        user_id=user,
        since=_seconds(since),
        until=_seconds(until),
    )

    async def read() -> list[RunWithAttempts]:
        async with opened(data_dir, config_file, archive, connection) as source:
            return await _read(source, search, name, last)

    found = asyncio.run(read())
    if as_json:
        print_json(found)
        return
    if name is None:
        _print_list(found)
        return
    shown = console()
    for each in found:
        if output().is_for_people:
            shown.print(_detailed(each))
        else:
            print_facts(_facts(each))


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.replace(tzinfo=UTC).timestamp()


async def _read(source: RecordSource, search: Search, name: str | None, last: int) -> list[RunWithAttempts]:
    if name is None:
        return await source.find(search, last)
    for criterion in ("request_id", "instance", "run"):
        found = await source.find(msgspec.structs.replace(search, **{criterion: name}), last)
        if found:
            return found
    raise OperatorError(f"there is no record of a request, an instance or a run {name}")


def _print_list(found: list[RunWithAttempts]) -> None:
    rows = [
        (utc(each.run.started_at), each.run.request_id, str(len(each.run.instances)), _outcome(each))
        for each in found
    ]
    print_table(("started (UTC)", "request", "instances", "outcome"), rows, named_by="request")


def _facts(each: RunWithAttempts) -> dict[str, str]:
    run = each.run
    return {
        "run": run.id,
        "request": run.request_id,
        "global request": run.global_request_id or "none",
        "project, user": f"{run.project_id}, {run.user_id}",
        "instances": ", ".join(run.instances),
        "request spec": json.dumps(_without_nothing(run.spec)),
        "started": f"{utc(run.started_at)}, took {(run.finished_at - run.started_at) * 1000:.1f} ms",
        "ledger version": "unknown" if run.version is None else str(run.version),
        "seed": "unknown" if run.seed is None else str(run.seed),
        "settings": "unknown" if run.settings is None else run.settings.digest,
        "alternates": _alternates(run),
        "outcome": _outcome(each),
        **({"warnings": "; ".join(one.text for one in run.warnings)} if run.warnings else {}),
    }


def _detailed(each: RunWithAttempts) -> Group:
    run = each.run
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _facts(each).items():
        facts.add_row(name, Text(value, overflow="fold"))
    steps = Table(box=None, pad_edge=False)
    for column in ("step", "", "hosts left", "removed"):
        steps.add_column(column, justify="left" if column in ("step", "") else "right")
    before = None
    first = run.steps[0].left if run.steps else 0
    for step in run.steps:
        removed = "" if before is None or before <= step.left else f"{before - step.left:,}"
        steps.add_row(Text(step.name), bar_of(step.left, first), f"{step.left:,}", removed)
        before = step.left
    attempts = Table(box=None, pad_edge=False)
    for column in ("at", "instance", "host", "cell", "weight", "result", "ended", "reason"):
        attempts.add_column(column, overflow="fold")
    for attempt in each.attempts:
        attempts.add_row(
            utc(attempt.at),
            attempt.instance,
            Text(attempt.host),
            Text(attempt.cell),
            f"{attempt.weight:.3f}",
            attempt.result,
            "" if attempt.finished_at is None else utc(attempt.finished_at),
            Text(attempt.reason or ""),
        )
    parts = [] if run.reasons is None else [*reasons_text(run.reasons)]
    if run.weighed:
        parts.append(weights_table(run.weighed))
    if run.steps:
        parts.append(steps)
    if each.attempts:
        parts.append(attempts)
    return Group(facts, *(shown for part in parts for shown in ("", part)), "")


def _without_nothing(spec: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a request spec that are not empty."""
    return {
        name: _without_nothing(value) if isinstance(value, dict) else value
        for name, value in spec.items()
        if value not in (None, False, 0, "", [], {})
    }


def _alternates(run: Run) -> str:
    found = [
        f"{place.instance}: " + ", ".join(f"{other.host} ({other.weight:.3f})" for other in place.alternates)
        for place in run.destinations
        if place.alternates
    ]
    return "; ".join(found) or "none"


def _outcome(each: RunWithAttempts) -> str:
    run = each.run
    placed = [attempt for attempt in each.attempts if attempt.result in (PENDING, BUILT)]
    claimed = {attempt.instance for attempt in placed}
    if run.refusal is not None and not claimed:
        return f"refused: {run.refusal}"
    if not each.attempts and run.destinations:
        # A run of shadow mode.
        chosen = _hosts(place.selected.host for place in run.destinations)
        return f"chose {chosen} for {len(run.destinations)}; claimed nothing"
    if not claimed:
        return "placed none"
    rest = "" if run.refusal is None else f"; {run.refusal}"
    hosts = {attempt.instance: attempt.host for attempt in placed}
    return f"{len(claimed)} on {_hosts(hosts.values())}{rest}"


def _hosts(names: Iterable[str]) -> str:
    """Return the first names of hosts, and the number of the others."""
    found = sorted(set(names))
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
