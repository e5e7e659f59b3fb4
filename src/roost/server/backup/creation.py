"""Backups: databases copied into a new folder while they serve."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

import roost
from roost.ledger import SCHEMA as LEDGER
from roost.ledger.findings import Finding
from roost.ledger.verify import verify
from roost.server.backup import mariadb, postgresql, sqlite
from roost.server.backup.errors import BackupError
from roost.server.backup.facts import BackupSnapshot, in_snapshots
from roost.server.backup.manifest import (
    FORM,
    Manifest,
    Progress,
    SavedDatabase,
    SavedFile,
    saved_file,
    sync,
    write_manifest,
)
from roost.server.backup.new_folder import new_folder
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseUrl

KINDS = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mariadb", "mariadb": "mariadb"}
"""The kind of database of each dialect."""

_DUMPS = {"sqlite": sqlite.dump, "postgresql": postgresql.dump, "mariadb": mariadb.dump}
_SUFFIXES = {"sqlite": "db", "postgresql": "dump", "mariadb": "sql"}


class BackupSource(NamedTuple):
    """A database to back up. ``name``: its name in the backup."""

    name: str
    url: DatabaseUrl | str


class Made(NamedTuple):
    """A backup that was made.

    ``findings``: the differences that verification found, each with the name of the database. ``behind``: the
    databases at an older revision, which can be verified only after an upgrade.
    """

    manifest: Manifest
    findings: list[tuple[str, Finding]]
    behind: list[str]


def make_backup(
    sources: Sequence[BackupSource],
    folder: Path,
    progress: Progress,
    files: Sequence[Path] = (),
    clock: Callable[[], float] = time.time,
) -> Made:
    """Copy databases into a new folder, which appears when it is complete and verified.

    The databases may be in use. Each copy is one snapshot. The snapshots are taken in the order of
    ``sources``, right after one another; on MariaDB the copy is a little newer. ``files`` are copied as they
    are.

    Raises:
        BackupError: a database cannot be copied, or the folder exists; nothing is left of the backup.
        StorageError: a database cannot be read, or its tables are those of a newer Roost.
    """
    databases: list[Database] = []
    try:
        for source in sources:
            databases.append(
                Database(source.url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS),
            )
        with new_folder(folder) as unfinished:
            at = clock()
            findings: list[tuple[str, Finding]] = []
            behind: list[str] = []

            def copy(snapshots: Sequence[BackupSnapshot]) -> list[SavedDatabase]:
                saved = []
                for source, snapshot in zip(sources, snapshots, strict=True):
                    saved.append(_copy(source.name, snapshot, unfinished, progress))
                    found = _verify(source.name, snapshot, unfinished / saved[-1].file, progress)
                    findings.extend((source.name, each) for each in found)
                    if not snapshot.facts.up_to_date:
                        behind.append(source.name)
                return saved

            saved = in_snapshots(databases, copy)
            others = tuple(_copy_file(each, unfinished, progress) for each in files)
            manifest = Manifest(
                form=FORM, roost=roost.__version__, at=at, databases=tuple(saved), files=others
            )
            write_manifest(unfinished, manifest)
        return Made(manifest, findings, behind)
    finally:
        for database in databases:
            asyncio.run(database.close())


def kind_of(database: Database) -> str:
    """Return the kind of a database. Raises `BackupError` for a kind that Roost does not support."""
    kind = KINDS.get(database.url.get_backend_name())
    if kind is None:
        raise BackupError(f"database {database} is none of {', '.join(sorted(set(KINDS.values())))}")
    return kind


def _copy(name: str, snapshot: BackupSnapshot, folder: Path, progress: Progress) -> SavedDatabase:
    kind = kind_of(snapshot.database)
    target = folder / f"{name}.{_SUFFIXES[kind]}"
    unit = "pages" if kind == "sqlite" else "bytes"
    _DUMPS[kind](snapshot, target, lambda done, total: progress(f"copying {name}", unit, done, total))
    sync(target)
    identity = snapshot.facts.identity
    return SavedDatabase(
        **msgspec.structs.asdict(saved_file(target, f"reading {target.name}", progress)),
        name=name,
        kind=kind,
        revisions=snapshot.facts.revisions,
        identity=None if identity is None else identity.uuid,
        incarnation=None if identity is None else identity.incarnation,
        version=snapshot.facts.version,
    )


def _verify(name: str, snapshot: BackupSnapshot, copy: Path, progress: Progress) -> list[Finding]:
    """Verify a ledger, and return the differences.

    For SQLite the copy is verified, for a server the snapshot that was copied. Tables at an older revision
    cannot be verified before they are upgraded.
    """
    if LEDGER.name not in snapshot.facts.revisions or not snapshot.facts.up_to_date:
        return []

    def show(done: int, total: int) -> None:
        progress(f"verifying {name}", "commits", done, total)

    if not snapshot.database.is_sqlite:
        return verify(snapshot.connection, show)
    copied = Database(f"sqlite:///{copy}", read_only=True)
    try:
        return copied.read_now(lambda connection: verify(connection, show))
    finally:
        asyncio.run(copied.close())


def _copy_file(path: Path, folder: Path, progress: Progress) -> SavedFile:
    target = folder / path.name
    target.write_bytes(path.read_bytes())
    sync(target)
    return saved_file(target, f"reading {path.name}", progress)
