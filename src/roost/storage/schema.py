"""A room's tables in a database: created and upgraded by Alembic, checked before use.

Several rooms may have tables in one database (the ledger and the conductor share the API database), so each
has its own sequence of revisions and its own version table.

The first revision of a sequence makes all tables. Databases of before it are refused.

A revision may leave programs of earlier revisions working. It then states ``works_from``, the oldest of these
revisions, which is stored beside the revision of the tables for programs that do not know the new one. So a
database can be upgraded while processes run, and the processes are upgraded, or rolled back, one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage.database import Database
from roost.storage.engine import WHOLE_TABLE_PLANS
from roost.storage.errors import ForeignTables, SchemaTooNew, SchemaTooOld

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

_WORKS_FROM = "works_from"

OLDER = "upgrade it first by 'roost db upgrade' of the Roost of commit 39efe71"
"""The advice for tables of before the first revisions."""

_VERSION_TABLE = "_schema"
"""The end of the name of the table that has the revision of a schema; the name of the schema is before it."""

_UPGRADE_LOCK_SECONDS = 600
"""Seconds that an upgrade waits on MariaDB for an upgrade by another process."""

EXACT: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mariadb", "mysql")
    for option, value in (
        ("engine", "InnoDB"),
        ("default_charset", "utf8mb4"),
        ("collate", "utf8mb4_nopad_bin"),
    )
}
"""Options of every table, also in migrations: ``sa.Table(..., **EXACT)``. Its text then compares exactly.

In MariaDB's default collation 'A' equals 'a', and in its usual binary collations 'a' equals 'a '. A unique
key would then refuse a provider whose name the commands, which compare exactly, accept.
"""


@dataclass(frozen=True)
class Schema:
    """The tables of one room and their revisions.

    Attributes:
        name: names the version table, ``NAME_schema``.
        scripts: the folder with Alembic's ``versions/``, a file for each revision: ``REVISION_name.py``.
        metadata: the tables at the newest revision.
    """

    name: str
    scripts: Path
    metadata: sa.MetaData

    def prepare(self, database: Database) -> None:
        """Create the tables in a SQLite file that has none of them; check them otherwise.

        Raises:
            SchemaTooOld, SchemaTooNew, ForeignTables: as `check`.
            DatabaseUnavailable: the database cannot be read or written.
        """
        revision = self.revision(database)
        if revision is None and database.is_sqlite:
            self.upgrade(database)
        else:
            self.check(database)

    def check(self, database: Database) -> None:
        """Check that this program works with the tables.

        Raises:
            SchemaTooOld: they are at an earlier revision than this program needs.
            SchemaTooNew: they are at a later revision, with which this program does not work.
            ForeignTables: as `refuse_foreign`.
            DatabaseUnavailable: the database cannot be read.
        """
        revision, works_from = database.read_now(self._at)
        head = self.newest
        if revision == head:
            return
        if revision is not None and revision not in self.revisions:
            if revision > head and works_from is not None and works_from <= head:
                return
            raise self.unknown(database, revision)
        if revision is None:
            self.refuse_foreign(database)
            raise SchemaTooOld(
                f"database {database} has no {self.name} tables: run {database.given.upgrade()}"
            )
        raise SchemaTooOld(
            f"database {database} is at {self.name} revision {revision}, this program needs {head}: "
            f"run {database.given.upgrade()}"
        )

    def refuse_foreign(self, database: Database) -> None:
        """Check that the database is not another program's whose tables have names of these.

        Nova's API database has four tables with the names of Roost's, and ``nova.conf`` names it by the
        option that names Roost's own.

        Raises:
            ForeignTables: it has such tables, and no version table of a schema of Roost.
            DatabaseUnavailable: the database cannot be read.
        """
        names = database.read_now(lambda connection: frozenset(sa.inspect(connection).get_table_names()))
        foreign = sorted(names & self.metadata.tables.keys())
        # Schemas of Roost that share a database share tables, such as that of its identity.
        if foreign and not any(name.endswith(_VERSION_TABLE) for name in names):
            raise ForeignTables(
                f"database {database} belongs to another program, such as Nova: it has a table "
                f"{foreign[0]}, but not Roost's table {self._version_table}; give Roost one of its own"
            )

    def upgrade(self, database: Database, applied: Callable[[str], None] = lambda _: None) -> None:
        """Upgrade the tables to the newest revision.

        ``applied`` is called with each revision after its changes were made.

        Raises:
            SchemaTooOld, SchemaTooNew: as `known_revision`.
            ForeignTables: as `refuse_foreign`.
            DatabaseUnavailable: the database cannot be written.
        """
        # Imported here because every start checks the tables but few upgrade them.
        from alembic.operations import Operations
        from alembic.runtime.migration import MigrationContext

        if self.known_revision(database) is None:
            self.refuse_foreign(database)
        scripts = _script_directory(self.scripts)

        def run(connection: Connection) -> None:
            context = MigrationContext.configure(
                connection,
                opts={
                    "version_table": self._version_table,
                    "fn": lambda at, _: scripts._upgrade_revs("head", at),
                    "on_version_apply": (lambda *, step, **_: applied(str(step.up_revision_id)),),
                },
            )
            with _upgrade_lock(connection), Operations.context(context):
                context.run_migrations()
                self._keep_works_from(connection)

        database.write_now(run)

    def works_from(self, revision: str) -> str:
        """Return the oldest revision whose programs work with the tables of a revision."""
        scripts = _script_directory(self.scripts)
        upto = [each for each in self.revisions if each <= revision]
        oldest, needed = revision, ""
        for earlier, later in reversed(list(pairwise(upto))):
            script = scripts.get_revision(later)
            assert script is not None
            # A later revision may break a program that an earlier one left working.
            needed = max(needed, getattr(script.module, "works_from", later))
            if needed > earlier:
                break
            oldest = earlier
        return oldest

    def revision(self, database: Database) -> str | None:
        """Read the revision of the tables; None if the database has no version table for them."""
        return database.read_now(self.revision_in)

    def revision_in(self, connection: Connection) -> str | None:
        """Like `revision`, in the transaction of a connection."""
        return self._at(connection)[0]

    def write_same(self, connection: Connection) -> None:
        """Write the revision of the tables as it is, to find out whether the database takes writes."""
        version = self._version
        connection.execute(sa.update(version).values({version.c.version_num: version.c.version_num}))

    def known_revision(self, database: Database) -> str | None:
        """Like `revision`, but only a revision of this program.

        Raises:
            SchemaTooOld: the revision is older than those of this program.
            SchemaTooNew: it is newer.
        """
        revision = self.revision(database)
        if revision is not None and revision not in self.revisions:
            raise self.unknown(database, revision)
        return revision

    def unknown(self, database: Database, revision: str) -> SchemaTooOld | SchemaTooNew:
        """Return the error for tables at a revision that this program does not have."""
        if revision < self.oldest:
            return SchemaTooOld(
                f"database {database} is at {self.name} revision {revision}, and this program upgrades from "
                f"{self.oldest} on: {OLDER}"
            )
        return SchemaTooNew(
            f"database {database} is at {self.name} revision {revision}, newer than this program, "
            f"which knows up to {self.newest}: run a newer Roost"
        )

    @property
    def revisions(self) -> Sequence[str]:
        """The revisions in this program, oldest first."""
        return sorted(script.name.partition("_")[0] for script in self.scripts.glob("versions/[0-9]*_*.py"))

    def revisions_after(self, revision: str | None) -> Sequence[str]:
        """The revisions that an upgrade from ``revision`` applies; None: from no tables."""
        return [each for each in self.revisions if revision is None or each > revision]

    def leaves_working(self, revision: str | None) -> bool:
        """Return whether programs of a revision work with the tables after an upgrade from it."""
        return revision is None or self.works_from(self.newest) <= revision

    @property
    def oldest(self) -> str:
        """The first revision in this program, which makes all tables."""
        return self.revisions[0]

    @property
    def newest(self) -> str:
        """The newest revision in this program."""
        return self.revisions[-1]

    @property
    def _version_table(self) -> str:
        return self.name + _VERSION_TABLE

    @property
    def _version(self) -> sa.TableClause:
        # ``works_from``: "REVISION OLDEST". It counts only if REVISION is that of the tables: an upgrade that
        # was interrupted has not written it yet.
        return sa.table(
            self._version_table, sa.column("version_num", sa.String), sa.column(_WORKS_FROM, sa.String)
        )

    def _at(self, connection: Connection) -> tuple[str | None, str | None]:
        """Read the revision of the tables, and the oldest one whose programs work with them, if known."""
        inspector = sa.inspect(connection)
        if not inspector.has_table(self._version_table):
            return None, None
        version = self._version
        if all(each["name"] != _WORKS_FROM for each in inspector.get_columns(self._version_table)):
            return connection.scalar(sa.select(version.c.version_num)), None
        row = connection.execute(sa.select(version)).one_or_none()
        if row is None:
            return None, None
        of, _, oldest = (row.works_from or "").partition(" ")
        return row.version_num, oldest if of == row.version_num else None

    def _keep_works_from(self, connection: Connection) -> None:
        """Store the oldest revision that works with the tables, for programs that lack the present one."""
        table = self._version_table
        if all(each["name"] != _WORKS_FROM for each in sa.inspect(connection).get_columns(table)):
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {_WORKS_FROM} VARCHAR(80)")
        said = f"{self.newest} {self.works_from(self.newest)}"
        connection.execute(sa.update(self._version).values({_WORKS_FROM: said}))


@cache
def _script_directory(folder: Path) -> "ScriptDirectory":
    """Return the revisions of a folder, read once: a process of tests makes hundreds of databases."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(folder))


@contextmanager
def _upgrade_lock(connection: Connection) -> Iterator[None]:
    """Make other upgrades wait. On Galera only those through the same node wait; SQLite needs no lock."""
    match connection.dialect.name:
        case "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('roost upgrade'))")
            for setting in WHOLE_TABLE_PLANS:  # an upgrade may copy a table
                connection.exec_driver_sql(f"SET LOCAL {setting} = on")
            yield
        case "mysql" | "mariadb":
            connection.exec_driver_sql(f"SELECT GET_LOCK('roost upgrade', {_UPGRADE_LOCK_SECONDS})")
            try:
                yield
            finally:
                if not connection.invalidated:  # a lost connection has released the lock
                    connection.exec_driver_sql("SELECT RELEASE_LOCK('roost upgrade')")
        case _:
            yield
