"""``roost db``: creates, upgrades, verifies, trims, backs up and restores databases."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import click

from roost.cli.backup import backup_command, restore_command
from roost.cli.command_group import CommandGroup
from roost.cli.databases import CommandDatabase, with_database
from roost.cli.exchange import export_command, import_command
from roost.cli.failures import COULD_NOT_RUN, FOUND_WRONG
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import action_as_json, as_json, document_as_json, note, print_json, print_table
from roost.cli.progress import no_progress, progress
from roost.cli.verification import check_ledger, verdict, verify_database
from roost.ledger.trim import TRIM_AT_ONCE
from roost.ledger.trim import trim as trim_commits
from roost.model.errors import OperatorError
from roost.server.backup.roles import ROLES, schemas_in
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseFull, Schema, make_room

TRIM_SLOWED = 10
"""Divisor of the number of commits in a transaction, applied after one for which the disk has no space."""


@click.group(cls=CommandGroup)
def db() -> None:
    """Make, upgrade, check, trim, back up and restore databases."""


for command in (import_command, export_command, backup_command, restore_command):
    db.add_command(command)


@db.command(epilog="Example: roost db verify --database sqlite:///roost-data/api.db")
@with_database
@no_progress
@as_json
def verify(named: CommandDatabase, as_json: bool) -> None:
    """Check a database for contradictions; it may be in use.

    The tables are compared with a fleet loaded from them and with all commits in the database, allocations
    with inventories, and claims with the instances in the cells' databases. Nothing is written. The
    configuration names the API database, if it is another one, and the databases of cells with sections.

    Exit status: 0 nothing found, 1 differences found (all are listed), 2 could not check everything.
    """
    with progress("verify") as meter:
        meter.begin("verify", "commits")
        findings, unread, verified = asyncio.run(verify_database(named.url, meter.count, named.source))
    if as_json:
        print_json({"findings": findings, "not_checked": unread, "verified": verified._asdict()})
    else:
        if findings:
            print_table(
                ("kind", "subject", "detail"), [(each.kind, each.subject, each.detail) for each in findings]
            )
        note(verdict(findings, verified))
    for cell in unread:
        click.echo(f"roost: cell {cell.cell} could not be checked: {cell.reason}", err=True)
    if findings:
        sys.exit(FOUND_WRONG)
    if unread:
        sys.exit(COULD_NOT_RUN)


@db.command(epilog="Example: roost db upgrade --database postgresql+psycopg://roost@db.example/roost")
@with_database
@click.option(
    "--role",
    type=click.Choice(list(ROLES)),
    help="Kind of the database. [default: its present kind; that of its section, or api, if it is empty]",
)
@click.option(
    "--rolling", is_flag=True, help="Refuse an upgrade with which the running processes would not work."
)
@no_progress
@action_as_json
def upgrade(named: CommandDatabase, role: str | None, rolling: bool, as_json: bool) -> None:
    """Create the tables, or bring them to this program's revision.

    Stop every process that uses the database first, unless `roost db version` says that the upgrade is
    rolling: then they go on, and are exchanged one by one afterwards. A database that a newer Roost has
    written is left as it is.
    """
    database = Database(named.url, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        schemas = ROLES[role] if role is not None else schemas_in(database, named.role or "api")
        before = [schema.known_revision(database) for schema in schemas]
        if rolling:
            _check_rolling(database, schemas, before)
        with progress("upgrade") as meter:
            for schema in schemas:
                left = schema.revisions_after(schema.revision(database))
                meter.begin(f"upgrade of {schema.name}", "revisions", total=len(left))
                schema.upgrade(database, lambda _: meter.count(meter.done + 1, meter.total))
        steps = [
            {"schema": schema.name, "from": was, "to": schema.revision(database)}
            for schema, was in zip(schemas, before, strict=True)
        ]
    finally:
        asyncio.run(database.close())
    _print_rows(steps, as_json)


@db.command(epilog="Example: roost db version --database sqlite:///roost-data/api.db")
@with_database
@as_json
def version(named: CommandDatabase, as_json: bool) -> None:
    """Show the revision of the tables, and the one that this program needs. An upgrade is rolling if the
    processes that run go on working with the tables that it makes.

    A database needs the tables of those services that use it; of other services it shows none.

    Exit status: 0 they are the same, 1 they are not, or there are none, 2 the database cannot be read.
    """
    database = Database(named.url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        rows = [
            {
                "schema": schema.name,
                "database": (at := schema.revision(database)),
                "program": schema.newest,
                "rolling": schema.leaves_working(at) if at is not None and at < schema.newest else None,
            }
            for schema in schemas_in(database, named.role or "api")
        ]
    finally:
        asyncio.run(database.close())
    _print_rows(rows, as_json)
    if {row["database"] == row["program"] for row in rows if row["database"] is not None} != {True}:
        sys.exit(FOUND_WRONG)


@db.command(epilog="Example: roost db trim --database sqlite:///roost-data/api.db --keep 10000 --days 7")
@with_database
@click.option(
    "--keep", type=WholeNumber(1), default=100_000, show_default=True, help="Newest commits to keep."
)
@click.option(
    "--days",
    type=Number(0),
    default=30.0,
    show_default=True,
    help="Days for which commits are kept.",
)
@no_progress
@document_as_json
def trim(named: CommandDatabase, keep: int, days: float, as_json: bool) -> None:
    """Remove old commits of the ledger: all but the newest --keep, and all that are older than --days.

    The newest commit always stays. The state itself is in the tables and is not touched. On a full disk the
    space of a SQLite file's write-ahead log is used first, and fewer commits are removed at once. The space
    of removed commits is used again for new ones.
    """
    database = Database(named.url, create=False, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        check_ledger(database)
        gone, older_than = 0, time.time() - days * 86_400
        with progress("trim") as meter:
            meter.begin("trim", "commits")
            for removed in _trimmed(database, keep, older_than):
                gone += removed
                meter.count(gone, None)
    finally:
        asyncio.run(database.close())
    if as_json:
        print_json({"removed": gone})
    else:
        click.echo(f"{gone} commit(s) removed")


def _trimmed(database: Database, keep: int, older_than: float) -> Iterator[int]:
    """Remove commits, and yield the number that each transaction removed.

    Raises:
        OperatorError: the disk is so full that not even one commit can be removed.
    """
    at_once = TRIM_AT_ONCE
    while True:
        try:
            removed = database.write_now(
                partial(trim_commits, keep=keep, older_than=older_than, at_once=at_once)
            )
        except DatabaseFull as error:
            make_room(database)
            if at_once == 1:
                raise OperatorError(
                    f"{error}: not even one commit can be removed; free some MiB on the disk of the "
                    "database, for example by moving old logs and backups away, and run this again"
                ) from error
            at_once = max(1, at_once // TRIM_SLOWED)
            continue
        if not removed:
            break
        yield removed
    make_room(database)


def _check_rolling(database: Database, schemas: Sequence[Schema], before: Sequence[str | None]) -> None:
    """Raise `OperatorError` if running programs would not work after the upgrade."""
    for schema, was in zip(schemas, before, strict=True):
        if not schema.leaves_working(was):
            raise OperatorError(
                f"the upgrade of {database} is not rolling: processes that work with {schema.name} revision "
                f"{was} do not work with {schema.newest}; stop them all, and upgrade without --rolling"
            )


def _print_rows(rows: Sequence[Mapping[str, str | bool | None]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
    else:
        print_table(tuple(rows[0]), [tuple(map(_shown, row.values())) for row in rows])


def _shown(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or "none"
