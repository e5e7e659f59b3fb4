"""What a backup or a restore refuses, and that it changes nothing then."""

import asyncio
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from roost.ledger import SCHEMA as LEDGER
from roost.server.backup.data_directory import back_up_directory
from roost.server.backup.errors import (
    BackupError,
    BackupTooNew,
    BackupTooOld,
    BackupUnreadable,
    TargetNotEmpty,
    ToolMissing,
)
from roost.server.backup.manifest import FILE, Manifest
from roost.server.backup.mariadb import PREPARED, REPLACED
from roost.state.api_database.cell_mappings import CellMapping, write_cell_mappings
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.storage import Database, SchemaTooNew
from roost.storage.identity import TABLE
from server.backup.backing import backed_up, content, fill, restored
from support.databases import Place, Servers


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A SQLite file with a ledger."""
    place = Place("sqlite", (f"sqlite:///{tmp_path / 'roost.db'}",))
    fill(place)
    return place


@pytest.fixture
def folder(place: Place, tmp_path: Path) -> Path:
    """A backup of it."""
    backed_up(place.url, tmp_path / "backup")
    return tmp_path / "backup"


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_a_folder_that_exists_is_not_touched(place: Place, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("text")
    with pytest.raises(TargetNotEmpty, match=r"there exists already: name a new folder"):
        backed_up(place.url, there)
    assert [each.name for each in there.iterdir()] == ["file"]
    assert not list(tmp_path.glob(".*unfinished"))


def test_a_database_of_others_is_refused(tmp_path: Path) -> None:
    execute(f"sqlite:///{tmp_path / 'other.db'}", "CREATE TABLE other (x INTEGER)")
    with pytest.raises(BackupError, match="has no tables of Roost"):
        backed_up(f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "backup")
    assert not list(tmp_path.glob("*backup*"))


def test_a_newer_database_is_refused(place: Place, tmp_path: Path) -> None:
    execute(place.url, "UPDATE ledger_schema SET version_num = '9999'")
    with pytest.raises(SchemaTooNew, match="run a newer Roost"):
        backed_up(place.url, tmp_path / "backup")


def test_a_damaged_database_is_not_backed_up(place: Place, tmp_path: Path) -> None:
    execute(place.url, "INSERT INTO inventories VALUES (99, 99, 1, 0, 1, 1, 1, 1.0)")
    with pytest.raises(BackupUnreadable, match="a row of table inventories refers to a missing row"):
        backed_up(place.url, tmp_path / "backup")
    assert not list(tmp_path.glob("*backup*"))


def test_differences_are_found_in_the_copy(place: Place, tmp_path: Path) -> None:
    execute(place.url, "UPDATE resource_providers SET generation = 99")
    made = backed_up(place.url, tmp_path / "backup")
    assert {finding.kind for _, finding in made.findings} == {"state-differs"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_only_an_empty_database_is_filled_unless_told(kind: str, servers: Servers, tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    with servers.place(kind, tmp_path) as place, servers.place(kind, aside) as other:
        fill(place, 5)
        backed_up(place.url, tmp_path / "backup")
        fill(other, 7)
        execute(other.url, f"UPDATE {TABLE} SET incarnation = 1000", "CREATE TABLE newer (x INTEGER)")
        before = content(other.url)
        with pytest.raises(TargetNotEmpty, match="give --replace"):
            restored(tmp_path / "backup", other.url)
        assert content(other.url) == before
        # The incarnation is greater than that of the backup, and of what it replaces.
        identity = restored(tmp_path / "backup", other.url, replace=True, now=500.0)
        assert identity is not None and identity.incarnation == 1001
        assert content(other.url) == content(place.url)


@pytest.mark.parametrize("ending", [PREPARED, REPLACED])
def test_a_database_of_others_is_left_alone(ending: str, servers: Servers, tmp_path: Path) -> None:
    with servers.place("mariadb", tmp_path) as place:
        fill(place, 5)
        backed_up(place.url, tmp_path / "backup")
        others = f"{place.url.rpartition('/')[2]}{ending}"
        execute(place.url, f"CREATE DATABASE {others}", f"CREATE TABLE {others}.kept (x INTEGER)")
        try:
            with pytest.raises(BackupError, match=f"there is a database {others}"):
                restored(tmp_path / "backup", place.url, replace=True)
            execute(place.url, f"INSERT INTO {others}.kept VALUES (1)")
        finally:
            execute(place.url, f"DROP DATABASE {others}")


def test_a_changed_file_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = folder / "database.db"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(BackupUnreadable, match=r"database\.db is not as it was written"):
        restored(folder, f"sqlite:///{tmp_path / 'new.db'}")
    file.write_bytes(data[:-1])
    with pytest.raises(BackupUnreadable):
        restored(folder, f"sqlite:///{tmp_path / 'new.db'}")
    file.unlink()
    with pytest.raises(BackupUnreadable, match=r"cannot read database\.db"):
        restored(folder, f"sqlite:///{tmp_path / 'new.db'}")
    assert not list(tmp_path.glob("*new.db*"))


def rewrite(folder: Path, **changes: object) -> None:
    manifest = msgspec.json.decode((folder / FILE).read_bytes(), type=Manifest)
    (folder / FILE).write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, **changes)))


def test_a_backup_of_a_newer_program_is_refused(folder: Path, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path / 'new.db'}"
    manifest = msgspec.json.decode((folder / FILE).read_bytes(), type=Manifest)
    newer = msgspec.structs.replace(manifest.databases[0], revisions={"ledger": "9999"})
    rewrite(folder, databases=(newer,))
    with pytest.raises(BackupTooNew, match=rf"knows up to {LEDGER.newest}: run a newer Roost"):
        restored(folder, target)
    rewrite(folder, form=2)
    with pytest.raises(BackupTooNew, match="has form 2"):
        restored(folder, target)
    (folder / FILE).write_text("{}")
    with pytest.raises(BackupUnreadable, match="is no backup"):
        restored(folder, target)
    assert not list(tmp_path.glob("*new.db*"))


def test_a_backup_from_which_nothing_upgrades_is_refused(folder: Path, tmp_path: Path) -> None:
    manifest = msgspec.json.decode((folder / FILE).read_bytes(), type=Manifest)
    rewrite(folder, databases=(msgspec.structs.replace(manifest.databases[0], revisions={"ledger": "0006"}),))
    with pytest.raises(BackupTooOld, match=f"upgrades from {LEDGER.oldest} on: restore it by the Roost that"):
        restored(folder, f"sqlite:///{tmp_path / 'new.db'}")
    assert not list(tmp_path.glob("*new.db*"))


def test_a_backup_goes_into_a_database_of_its_kind(folder: Path) -> None:
    with pytest.raises(BackupError, match=r"cannot be restored into postgresql://\*\*\*@host/name"):
        restored(folder, "postgresql://user:secret@host/name")


@pytest.mark.parametrize(("kind", "tool"), [("postgresql", "pg_dump"), ("mariadb", "mariadb-dump")])
def test_a_missing_program_is_named(
    kind: str, tool: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.place(kind, tmp_path) as place:
        fill(place, 1)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ToolMissing, match=rf"program {tool} is not installed: install the package"):
            backed_up(place.url, tmp_path / "backup")
    assert not list(tmp_path.glob("*backup*"))


def test_tables_of_an_older_revision_are_upgraded(place: Place, folder: Path, tmp_path: Path) -> None:
    # As revision 0007 had it.
    execute(place.url, "DROP TABLE operator_word", "UPDATE ledger_schema SET version_num = '0007'")
    made = backed_up(place.url, tmp_path / "old")
    assert made.behind == ["database"]
    restored(tmp_path / "old", f"sqlite:///{tmp_path / 'new.db'}")
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    LEDGER.check(database)


def test_a_directory_whose_cell_is_elsewhere_is_refused(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'api.db'}")
    CONDUCTOR.prepare(database)
    database.write_now(write_cell_mappings((CellMapping("far", "cell_far"),)))
    asyncio.run(database.close())
    with pytest.raises(BackupError, match=r"cell far is that of \[cell_far\], not in the directory"):
        back_up_directory(tmp_path, tmp_path / "backup", lambda *_: None)
    assert not (tmp_path / "backup").exists()
