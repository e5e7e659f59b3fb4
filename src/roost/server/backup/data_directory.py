"""All databases of a `roost up` in one backup."""

import asyncio
import time
from pathlib import Path

from sqlalchemy.engine import Connection

from roost.server.all_in_one.data_directory import API_DB
from roost.server.all_in_one.layout import FILE as LAYOUT
from roost.server.backup.creation import BackupSource, Made, make_backup
from roost.server.backup.errors import BackupError
from roost.server.backup.manifest import Progress, check_file, read_manifest, sync
from roost.server.backup.new_folder import new_folder
from roost.server.backup.restore import Clock, prepare_file
from roost.state.api_database.cell_mappings import at_urls, mapped_cells, write_cell_mappings
from roost.storage import Database, DatabaseIdentity

API = Path(API_DB).stem
RECORDS = "records"


def back_up_directory(directory: Path, folder: Path, progress: Progress, clock: Clock = time.time) -> Made:
    """Back up the databases in a data directory: the cells' first, then the API's, then the records.

    The order keeps claims and instances consistent. A claim is written before the instance's row in its
    cell. The API database is read after the cells, so it has the claim of each instance in them, and the
    capacity of a running guest is not given away. In the other order, an instance that is built during the
    backup would be in it without its claim.

    Raises:
        BackupError: a database cannot be copied, or the folder exists; nothing is left of the backup.
        StorageError: a database cannot be read.
    """
    directory = directory.resolve()
    api = f"sqlite:///{directory / API_DB}"
    names = [*sorted(_cells(api)), API]
    if (directory / f"{RECORDS}.db").exists():
        names.append(RECORDS)
    sources = [BackupSource(name, f"sqlite:///{directory / name}.db") for name in names]
    files = [path for path in (directory / LAYOUT,) if path.exists()]
    return make_backup(sources, folder, progress, files, clock)


def restore_directory(
    folder: Path, directory: Path, progress: Progress, clock: Clock = time.time
) -> dict[str, DatabaseIdentity | None]:
    """Make a data directory from a backup of one; it appears when it is complete.

    Returns:
        The identity of each database, with the raised incarnation.

    Raises:
        BackupError: the backup cannot be used, or the directory is not empty.
    """
    manifest = read_manifest(folder)
    names = [each.name for each in manifest.databases]
    if API not in names or any(each.kind != "sqlite" for each in manifest.databases):
        raise BackupError(f"backup {folder} is not one of a data directory: restore it with --database")
    directory = directory.absolute()

    def move(database: Database) -> None:
        """Rewrite the cells' mappings to name the files of the new directory."""

        def write(connection: Connection) -> None:
            cells = mapped_cells(connection)
            write_cell_mappings(at_urls({name: f"sqlite:///{directory / name}.db" for name in cells}))(
                connection
            )

        database.write_now(write)

    identities = {}
    with new_folder(directory) as unfinished:
        for saved in manifest.databases:
            file = check_file(folder, saved, progress)
            prepared = unfinished / f"{saved.name}.db"
            change = move if saved.name == API else _unchanged
            identities[saved.name] = prepare_file(saved, file, prepared, None, progress, clock, change)
        for other in manifest.files:
            target = unfinished / Path(other.file).name
            target.write_bytes(check_file(folder, other, progress).read_bytes())
            sync(target)
    return identities


def _cells(api: str) -> list[str]:
    database = Database(api, read_only=True)
    try:
        cells = database.read_now(mapped_cells)
    finally:
        asyncio.run(database.close())
    for cell in cells.values():
        if cell.section is not None:
            raise BackupError(
                f"the database of cell {cell.name} is that of [{cell.section}], not in the directory: "
                "back each database up with --database"
            )
    return list(cells)


def _unchanged(database: Database) -> None:
    """Change nothing."""
