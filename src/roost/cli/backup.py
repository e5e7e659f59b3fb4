"""``roost db backup`` and ``roost db restore``."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from roost.cli.databases import DatabaseChoice, choosing_database
from roost.cli.failures import FOUND_WRONG
from roost.cli.output import action_as_json, note, print_further, print_json, print_table
from roost.cli.progress import ProgressMeter, no_progress, progress
from roost.cli.verification import Verified, verdict, verify_database
from roost.conductor.verify import Unread
from roost.ledger import SCHEMA as LEDGER
from roost.ledger.findings import Finding
from roost.server.all_in_one.data_directory import API_DB, locked
from roost.server.backup.creation import BackupSource, make_backup
from roost.server.backup.data_directory import back_up_directory, restore_directory
from roost.server.backup.restore import restore_database
from roost.server.backup.roles import schemas_in
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseIdentity, DatabaseUrl

DATABASE = "database"
"""The name, in a backup, of a single database."""

_data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Data directory of roost up: all databases in it.",
)


@click.command("backup", epilog="Example: roost db backup --database sqlite:///roost.db ./backup-1")
@click.argument("folder", type=click.Path(path_type=Path))
@choosing_database
@_data_dir
@no_progress
@action_as_json
def backup_command(folder: Path, choice: DatabaseChoice, data_dir: Path | None, as_json: bool) -> None:
    """Copy a database, or all of a data directory, into the new folder FOLDER; it may be in use.

    Each copy is one snapshot. Servers need the client programs of their database: pg_dump and pg_restore, or
    mariadb-dump. FOLDER appears when the backup is complete and verified.

    Exit status: 0 done, 1 done, but verification found differences (all are listed), 2 failed.
    """
    chosen = _named(choice, data_dir)
    with progress("backup") as meter:
        if isinstance(chosen, Path):
            made = back_up_directory(chosen, folder, meter.show)
        else:
            made = make_backup([BackupSource(DATABASE, chosen)], folder, meter.show)
    findings = [
        Finding(each.kind, f"{name}: {each.subject}" if data_dir else each.subject, each.detail)
        for name, each in made.findings
    ]
    if as_json:
        print_json({"folder": str(folder), "manifest": made.manifest, "findings": findings})
    else:
        rows = [
            (
                each.name,
                each.kind,
                "" if each.version is None else f"{each.version:,}",
                f"{each.size:,}",
                each.identity or "",
                "" if each.incarnation is None else str(each.incarnation),
            )
            for each in made.manifest.databases
        ]
        print_table(("database", "kind", "version", "bytes", "identity", "incarnation"), rows)
        _print_findings(findings)
        note(f"verified: {len(findings) or 'no'} differences found")
    for name in made.behind:
        click.echo(
            f"roost: {name} is at an older revision and was not verified; a restore upgrades and verifies it",
            err=True,
        )
    if findings:
        sys.exit(FOUND_WRONG)


@click.command("restore", epilog="Example: roost db restore ./backup-1 --database sqlite:///roost.db")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@choosing_database
@_data_dir
@click.option(
    "--only", metavar="NAME", help="The database of the backup, if it has several. With --database."
)
@click.option("--replace", is_flag=True, help="Drop all tables of the database first. With --database.")
@no_progress
@action_as_json
def restore_command(
    folder: Path,
    choice: DatabaseChoice,
    data_dir: Path | None,
    only: str | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Fill an empty database, or a new data directory, from the backup in FOLDER.

    Stop every process that uses the database first. The incarnation is raised, the tables are upgraded to
    this program's revision and verified. A restore that is interrupted leaves the database as it was.

    Exit status: 0 done, 1 done, but verification found differences (all are listed), 2 failed.
    """
    chosen = _named(choice, data_dir)
    if data_dir is not None and (only is not None or replace):
        raise click.UsageError("--only and --replace need --database")
    with progress("restore") as meter:
        if isinstance(chosen, Path):
            identities = restore_directory(folder, chosen, meter.show)
            with locked(chosen):
                findings, unread, verified = _verify(f"sqlite:///{chosen.resolve() / API_DB}", meter)
        else:
            identities = {only or DATABASE: restore_database(folder, only, chosen, replace, meter.show)}
            findings, unread, verified = _verify(chosen, meter)
    if as_json:
        restored = [
            {"name": name, "identity": each and each.uuid, "incarnation": each and each.incarnation}
            for name, each in identities.items()
        ]
        print_json({"databases": restored, "findings": findings, "not_checked": unread})
    else:
        print_table(("database", "identity", "incarnation"), [_row(*each) for each in identities.items()])
        _print_findings(findings)
        if verified is not None:
            note(verdict(findings, verified))
        for cell in unread:
            click.echo(f"roost: cell {cell.cell} could not be checked: {cell.reason}", err=True)
    if findings:
        sys.exit(FOUND_WRONG)


def _row(name: str, identity: DatabaseIdentity | None) -> tuple[str, str, str]:
    return (name, "", "") if identity is None else (name, identity.uuid, str(identity.incarnation))


def _named(choice: DatabaseChoice, data_dir: Path | None) -> DatabaseUrl | Path:
    """Return the database or data directory of a command. Raises `UsageError` if both are named."""
    if data_dir is None:
        return choice.find("--database or --data-dir").url
    if choice.is_named:
        raise click.UsageError("give either --database or --data-dir")
    return data_dir


def _verify(
    url: DatabaseUrl | str, meter: ProgressMeter
) -> tuple[list[Finding], list[Unread], Verified | None]:
    """Verify a restored database. The restore itself has checked a database without a ledger."""
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        ledger = LEDGER in schemas_in(database)
    finally:
        asyncio.run(database.close())
    if not ledger:
        return [], [], None
    return asyncio.run(
        verify_database(url, lambda done, total: meter.show("verifying", "commits", done, total))
    )


def _print_findings(findings: Sequence[Finding]) -> None:
    rows = [(each.kind, each.subject, each.detail) for each in findings]
    print_further(("kind", "subject", "detail"), rows)
