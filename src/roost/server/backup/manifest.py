"""The manifest of a backup: its databases and files, with sizes, hashes and revisions."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from roost.server.backup.errors import BackupTooNew, BackupTooOld, BackupUnreadable
from roost.server.backup.roles import SCHEMAS
from roost.storage.schema import OLDER

FILE = "manifest.json"
FORM = 1
"""The version of the format of backups that this program writes and reads."""

_READ_AT_ONCE = 2**20

Progress = Callable[[str, str, int, int | None], None]
"""Called with the current step, the unit of the numbers, the number done, and the total or None."""


class SavedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a backup. ``sha256``: of its content, as hexadecimal digits."""

    file: str
    size: int
    sha256: str


class SavedDatabase(SavedFile, frozen=True, kw_only=True):
    """A database in a backup.

    ``kind``: sqlite, postgresql or mariadb. ``revisions``: the revision of each schema, by its name.
    ``version``: the newest commit of its ledger; on MariaDB, the newest one when the backup began.
    ``identity`` is None if the tables are older than identities.
    """

    name: str
    kind: str
    revisions: dict[str, str]
    identity: str | None
    incarnation: int | None
    version: int | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a backup.

    ``form``: the version of the format. ``roost``: the version of the program that made the backup. ``at``:
    seconds since the epoch. ``files``: further files, which are not databases.
    """

    form: int
    roost: str
    at: float
    databases: tuple[SavedDatabase, ...]
    files: tuple[SavedFile, ...] = ()


class _Form(msgspec.Struct):
    form: int


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a backup, durably."""
    path = folder / FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    sync(path)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a backup.

    Raises:
        BackupUnreadable: the folder is not a backup.
        BackupTooNew: the backup was made by a newer Roost.
    """
    path = folder / FILE
    try:
        text = path.read_bytes()
        form = msgspec.json.decode(text, type=_Form).form
        if form > FORM:
            raise BackupTooNew(
                f"backup {folder} has form {form}, this program reads {FORM}: run a newer Roost"
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except OSError as error:
        raise BackupUnreadable(f"{folder} is no backup: cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BackupUnreadable(f"{folder} is no backup: {path}: {error}") from error
    for database in manifest.databases:
        _check_revisions(folder, database)
    return manifest


def _check_revisions(folder: Path, database: SavedDatabase) -> None:
    for name, revision in database.revisions.items():
        schema = SCHEMAS.get(name)
        if schema is not None and revision < schema.oldest:
            raise BackupTooOld(
                f"database {database.name} of backup {folder} is at {name} revision {revision}, and this "
                f"program upgrades from {schema.oldest} on: restore it by the Roost that made it, and {OLDER}"
            )
        if schema is None or revision not in schema.revisions:
            newest = "no such tables" if schema is None else f"up to {schema.newest}"
            raise BackupTooNew(
                f"database {database.name} of backup {folder} is at {name} revision {revision}, newer than "
                f"this program, which knows {newest}: run a newer Roost"
            )


def saved_file(path: Path, step: str, progress: Progress) -> SavedFile:
    """Return a file's name, size and hash."""
    return SavedFile(file=path.name, size=path.stat().st_size, sha256=_sha256(path, step, progress))


def check_file(folder: Path, saved: SavedFile, progress: Progress) -> Path:
    """Check that a file of a backup is as it was written; return its path.

    Raises:
        BackupUnreadable: the file is missing, or its size or hash differs.
    """
    path = folder / Path(saved.file).name
    try:
        size = path.stat().st_size
        found = _sha256(path, f"reading {saved.file}", progress) if size == saved.size else None
    except OSError as error:
        raise BackupUnreadable(f"backup {folder}: cannot read {path.name}: {error.strerror}") from error
    if found != saved.sha256:
        raise BackupUnreadable(f"backup {folder}: {path.name} is not as it was written; use another backup")
    return path


def sync(path: Path) -> None:
    """Make a file, or the entries of a folder, durable (fsync)."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sha256(path: Path, step: str, progress: Progress) -> str:
    total = path.stat().st_size
    done = 0
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_READ_AT_ONCE):
            found.update(part)
            done += len(part)
            progress(step, "bytes", done, total)
    return found.hexdigest()
