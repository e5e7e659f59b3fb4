"""``roost replay-decision``: makes a recorded decision again, unchanged or with a changed request."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

from roost.cli.bars import WIDTH, bar_of
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import WholeNumber
from roost.cli.output import console, document_as_json, print_json
from roost.cli.progress import ProgressMeter, no_progress, progress
from roost.cli.record_sources import FOREVER, open_backend
from roost.cli.verification import check_ledger
from roost.ledger.past_fleet import PastFleet
from roost.model.errors import OperatorError
from roost.model.record import Step
from roost.model.spec import Destination
from roost.process.option_source import Source
from roost.records import RunWithAttempts, Search, SearchableRecords, spec_of
from roost.records.backend import open_sql_records
from roost.scheduler.replay import DecisionDifference, DecisionReplay, NotReproducible, Replayed, in_order
from roost.scheduler.request.changed import Changes, flavor_from
from roost.server.options import read_scheduling_options
from roost.state.api_database.node_journal import NodeJournals
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseUrl


class ReplayedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replayed run. ``impossible``: why it could not be decided again."""

    run: str
    request_id: str
    same: bool | None = None
    impossible: str | None = None
    differences: list[DecisionDifference] = []
    notes: list[str] = []
    steps: tuple[Step, ...] = ()
    refusal: str | None = None
    destinations: tuple[Destination, ...] = ()


@click.command(epilog="Example: roost replay-decision req-5d1c --data-dir ./roost-data/up")
@click.argument("name", required=False, metavar="[RUN]")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Data directory of roost up or roost replay."
)
@click.option("--database", metavar="URL", help="The API database. [default: api.db in the data directory]")
@click.option(
    "--ledger",
    metavar="URL",
    help="The database of placement, where that is not the API database, as with placement over HTTP.",
)
@click.option(
    "--records",
    "records_url",
    metavar="URL",
    help="The database of records. [default: in the data directory]",
)
@click.option(
    "--config-file",
    type=click.Path(path_type=Path),
    help="A configuration that names these databases.",
)
@click.option("--last", type=WholeNumber(min=1), help="Decide the last N runs again, instead of one.")
@click.option(
    "--without",
    multiple=True,
    metavar="CONSTRAINT",
    help="Leave out a filter, or a constraint as the steps of the run name it. May be repeated.",
)
@click.option(
    "--flavor",
    metavar="CHANGES",
    help="Decide for another flavor: changes as 'vcpus=2,memory_mb=4096,hw:cpu_policy=dedicated', where an "
    "empty value removes an extra spec.",
)
@click.option("--now", is_flag=True, help="Decide on the present state instead of that of the run.")
@no_progress
@document_as_json
def replay_decision(
    name: str | None,
    data_dir: Path | None,
    database: DatabaseUrl | str | None,
    ledger: DatabaseUrl | str | None,
    records_url: str | None,
    config_file: Path | None,
    last: int | None,
    without: tuple[str, ...],
    flavor: str | None,
    now: bool,
    as_json: bool,
) -> None:
    """Make a decision of the scheduler again, and tell whether it is the same.

    RUN is the id of a run, of a request or of an instance. The decision is made on the state of placement and
    of the nodes as they were, by the same code as then. Nothing is claimed. With --without, --flavor or --now
    it tells what would have come of the changed request.

    Exit status: 0 all the same, 1 a decision differs, 2 a decision cannot be made again.
    """
    if (name is None) == (last is None):
        raise click.UsageError("name a RUN, or the number of runs with --last")
    if (data_dir or config_file) is None and (database is None or records_url is None):
        raise click.UsageError("name --data-dir, or --config-file, or --database and --records")
    if data_dir is not None and config_file is not None:
        raise click.UsageError("--data-dir and --config-file name different databases: give one of them")
    if config_file is not None:
        options = read_scheduling_options(Source((str(config_file),)), hosts_needed=False)
        ledger = ledger or options.database
        database = database or options.api_database or options.database
    database = database or f"sqlite:///{(data_dir or Path()).resolve() / 'api.db'}"
    with progress("replay") as meter:
        answers = asyncio.run(
            _answers(
                name,
                database,
                ledger,
                _records(data_dir, config_file, records_url),
                last,
                Changes(without, None, now),
                flavor,
                meter,
            )
        )
    changed = bool(without or flavor or now)
    if as_json:
        print_json(answers)
    else:
        _print(answers, changed, one=last is None)
    if any(each.differences for each in answers):
        sys.exit(FOUND_WRONG)
    impossible = [each for each in answers if each.impossible is not None]
    if impossible and last is None:
        raise OperatorError(f"run {impossible[0].run} cannot be decided again: {impossible[0].impossible}")


async def _answers(
    name: str | None,
    database: DatabaseUrl | str,
    ledger: DatabaseUrl | str | None,
    opened_records: AbstractAsyncContextManager[SearchableRecords],
    last: int | None,
    changes: Changes,
    flavor: str | None,
    meter: ProgressMeter,
) -> list[ReplayedDecision]:
    async with opened_records as records:
        runs = await _runs(records, name, last)
    async with AsyncExitStack() as stack:
        api = _database(stack, database)
        placement = api if ledger in (None, database) else _database(stack, ledger)
        check_ledger(placement)
        meter.begin("ledger", "commits")
        replay = DecisionReplay(await PastFleet.open(placement, meter.count), NodeJournals(api))
        answers = []
        for each in in_order(runs):
            other = None if flavor is None else flavor_from(spec_of(each.run).flavor, flavor)
            answers.append(await _answer(replay, each, msgspec.structs.replace(changes, flavor=other)))
    place = {each.run.id: number for number, each in enumerate(runs)}
    return sorted(answers, key=lambda each: place[each.run])


def _database(stack: AsyncExitStack, url: DatabaseUrl | str) -> Database:
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    stack.push_async_callback(database.close)
    return database


async def _answer(replay: DecisionReplay, recorded: RunWithAttempts, changes: Changes) -> ReplayedDecision:
    run = recorded.run
    try:
        made: Replayed = await replay.again(recorded, changes)
    except NotReproducible as error:
        return ReplayedDecision(run=run.id, request_id=run.request_id, impossible=str(error))
    return ReplayedDecision(
        run=run.id,
        request_id=run.request_id,
        same=None if changes != Changes() else not made.differences,
        differences=made.differences,
        notes=made.notes,
        steps=made.outcome.steps,
        refusal=made.outcome.refusal,
        destinations=made.outcome.destinations,
    )


@asynccontextmanager
async def _records(
    data_dir: Path | None, config_file: Path | None, url: str | None
) -> AsyncIterator[SearchableRecords]:
    if url is None:
        backend = await open_backend(data_dir, config_file)
    else:
        backend = await open_sql_records(url, FOREVER)
    try:
        yield backend
    finally:
        await backend.close()


async def _runs(records: SearchableRecords, name: str | None, last: int | None) -> list[RunWithAttempts]:
    if name is None:
        return await records.last(last or 1)
    for search in (Search(run=name), Search(request_id=name), Search(instance=name)):
        if found := await records.find(search):
            return found
    raise OperatorError(f"there is no record of a run, a request or an instance {name}")


def _print(answers: list[ReplayedDecision], changed: bool, *, one: bool) -> None:
    shown = console()
    if not one:
        same = sum(each.same is True for each in answers)
        impossible = [each for each in answers if each.impossible is not None]
        shown.print(
            f"{same:,} of {len(answers):,} decisions are the same; {len(impossible):,} cannot be made again"
        )
        reasons = {each.impossible: each for each in impossible}
        for reason, each in [*reasons.items()][:10]:
            shown.print(Text(f"  run {each.run}: {reason}"))
    for each in answers:
        if each.impossible is None and (one or each.differences):
            shown.print(_shown(each, changed))
            for note in each.notes:
                shown.print(Text(f"note: {note}"))


def _shown(each: ReplayedDecision, changed: bool) -> Table | Text:
    if each.differences:
        table = Table("part", "recorded", "again", title=f"run {each.run} differs", box=None)
        for one in each.differences:
            table.add_row(*map(Text, (one.what, one.recorded, one.again)))
        return table
    hosts = [f"{one.instance} on {one.selected.host}" for one in each.destinations]
    came = ", ".join(hosts) if hosts else f"refused: {each.refusal}"
    if not changed:
        return Text(f"run {each.run} is decided the same: {came}")
    first = each.steps[0].left if each.steps else 0
    steps = "\n".join(
        f"  {step.left:>9,}  {bar_of(step.left, first):<{WIDTH}}  {step.name}" for step in each.steps
    )
    return Text(f"run {each.run} so changed: {came}\n{steps}")
