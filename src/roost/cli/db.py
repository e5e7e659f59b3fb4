"""``roost db``: creates, upgrades, verifies, trims, backs up and restores databases."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence

import click

from roost.backup.roles import ROLES, schemas_in
from roost.cli.backup import backup_command, restore_command
from roost.cli.exchange import export_command, import_command
from roost.cli.failures import COULD_NOT_RUN, FOUND_WRONG
from roost.cli.options import config_files, database_url, settings
from roost.cli.output import action_as_json, as_json, document_as_json, note, print_json, print_table
from roost.cli.placement_config import placement_source
from roost.cli.progress import no_progress, progress
from roost.cli.verification import check_ledger, verdict, verify_database
from roost.ledger.trim import trim as trim_commits
from roost.model.errors import OperatorError
from roost.storage import COMMAND_ANSWER_SECONDS, Database, Schema


@click.group()
def db() -> None:
    """Make, upgrade, check, trim, back up and restore databases."""


for command in (import_command, export_command, backup_command, restore_command):
    db.add_command(command)


@db.command(epilog="Example: roost db verify --database sqlite:///roost-data/api.db")
@database_url
@config_files
@settings
@no_progress
@as_json
def verify(url: str, config_files: tuple[str, ...], settings: tuple[str, ...], as_json: bool) -> None:
    """Check a database for contradictions; it may be in use.

    The tables are compared with a fleet loaded from them and with all commits in the database, allocations
    with inventories, and claims with the instances in the cells' databases. Nothing is written. The
    configuration names the API database, if it is another one, and the databases of cells with sections.

    Exit status: 0 nothing found, 1 differences found (all are listed), 2 could not check everything.
    """
    source = placement_source(config_files, settings)
    with progress("verify") as meter:
        meter.begin("verify", "commits")
        findings, unread, verified = asyncio.run(verify_database(url, meter.count, source))
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
@database_url
@click.option(
    "--role",
    type=click.Choice(list(ROLES)),
    help="Kind of the database. [default: its present kind; api for an empty database]",
)
@click.option(
    "--rolling", is_flag=True, help="Refuse an upgrade with which the running processes would not work."
)
@no_progress
@action_as_json
def upgrade(url: str, role: str | None, rolling: bool, as_json: bool) -> None:
    """Create the tables, or bring them to this program's revision.

    Stop every process that uses the database first, unless `roost db version` says that the upgrade is
    rolling: then they go on, and are exchanged one by one afterwards. A database that a newer Roost has
    written is left as it is.
    """
    database = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        schemas = ROLES[role] if role is not None else schemas_in(database)
        before = [schema.known_revision(database) for schema in schemas]
        if rolling:
            _check_rolling(url, schemas, before)
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
@database_url
@as_json
def version(url: str, as_json: bool) -> None:
    """Show the revision of the tables, and the one that this program needs. An upgrade is rolling if the
    processes that run go on working with the tables that it makes.

    Exit status: 0 they are the same, 1 they are not, 2 the database cannot be read.
    """
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        rows = [
            {
                "schema": schema.name,
                "database": (at := schema.revision(database)),
                "program": schema.newest,
                "rolling": schema.leaves_working(at) if at is not None and at < schema.newest else None,
            }
            for schema in schemas_in(database)
        ]
    finally:
        asyncio.run(database.close())
    _print_rows(rows, as_json)
    if any(row["database"] != row["program"] for row in rows):
        sys.exit(FOUND_WRONG)


@db.command(epilog="Example: roost db trim --database sqlite:///roost-data/api.db --keep 10000 --days 7")
@database_url
@click.option(
    "--keep", type=click.IntRange(1), default=100_000, show_default=True, help="Newest commits to keep."
)
@click.option(
    "--days",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Days for which commits are kept.",
)
@no_progress
@document_as_json
def trim(url: str, keep: int, days: float, as_json: bool) -> None:
    """Remove old commits of the ledger: all but the newest --keep, and all that are older than --days.

    The newest commit always stays. The state itself is in the tables and is not touched.
    """
    database = Database(url, create=False, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        check_ledger(database)
        gone, older_than = 0, time.time() - days * 86_400
        with progress("trim") as meter:
            meter.begin("trim", "commits")
            while removed := database.write_now(
                lambda connection: trim_commits(connection, keep, older_than)
            ):
                gone += removed
                meter.count(gone, None)
    finally:
        asyncio.run(database.close())
    if as_json:
        print_json({"removed": gone})
    else:
        click.echo(f"{gone} commit(s) removed")


def _check_rolling(url: str, schemas: Sequence[Schema], before: Sequence[str | None]) -> None:
    """Raises `OperatorError` if a program of now would not work after an upgrade."""
    for schema, was in zip(schemas, before, strict=True):
        if not schema.leaves_working(was):
            raise OperatorError(
                f"the upgrade of {url} is not rolling: processes that work with {schema.name} revision {was} "
                f"do not work with {schema.newest}; stop them all, and upgrade without --rolling"
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
