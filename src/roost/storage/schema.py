"""A room's tables in a database: made and upgraded by Alembic, checked before use.

Several rooms may keep tables in one database (placement and the conductor share the API database), so
each has its own line of revisions and its own version table.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection

from roost.storage.database import Database
from roost.storage.engine import WHOLE_TABLES
from roost.storage.errors import SchemaTooNew, SchemaTooOld

_UPGRADE_SECONDS = 600
"""How long an upgrade waits for another's on MariaDB."""


@dataclass(frozen=True)
class Schema:
    """One line of revisions.

    ``name`` names the version table, ``scripts`` is the folder that holds ``versions/``, ``metadata`` the
    tables as they are at the newest revision.
    """

    name: str
    scripts: Path
    metadata: sa.MetaData

    def prepare(self, database: Database) -> None:
        """Make the tables in an empty SQLite file; check them anywhere else.

        Raises `SchemaTooOld` or `SchemaTooNew`.
        """
        revision = self.revision(database)
        if revision is None and database.is_sqlite:
            self.upgrade(database)
        else:
            self.check(database)

    def check(self, database: Database) -> None:
        """Raise `SchemaTooOld` or `SchemaTooNew` unless the tables are at the newest revision."""
        revision = self.known_revision(database)
        head = self.newest
        if revision == head:
            return
        if revision is None:
            raise SchemaTooOld(
                f"database {database} has no {self.name} tables: run 'roost db upgrade --database {database}'"
            )
        raise SchemaTooOld(
            f"database {database} is at {self.name} revision {revision}, this program needs {head}: "
            f"run 'roost db upgrade --database {database}'"
        )

    def upgrade(self, database: Database) -> None:
        """Bring the tables to the newest revision. Raises `SchemaTooNew`."""
        self.known_revision(database)
        scripts = self._directory()

        def run(connection: Connection) -> None:
            context = MigrationContext.configure(
                connection,
                opts={
                    "version_table": self._version_table,
                    "fn": lambda at, _: scripts._upgrade_revs("head", at),
                },
            )
            with _alone(connection), Operations.context(context):
                context.run_migrations()

        database.write_now(run)

    def revision(self, database: Database) -> str | None:
        """The revision that the database is at, None if it has none of these tables."""
        return database.read_now(
            lambda connection: MigrationContext.configure(
                connection, opts={"version_table": self._version_table}
            ).get_current_revision()
        )

    def known_revision(self, database: Database) -> str | None:
        """Like `revision`, but raise `SchemaTooNew` for one that this program does not know."""
        revision = self.revision(database)
        if revision is not None and not _knows(self._directory(), revision):
            raise SchemaTooNew(
                f"database {database} is at {self.name} revision {revision}, newer than this program, "
                f"which knows up to {self.newest}: run a newer Roost"
            )
        return revision

    @property
    def newest(self) -> str | None:
        """The newest revision that this program knows."""
        return self._directory().get_current_head()

    @property
    def _version_table(self) -> str:
        return f"{self.name}_schema"

    def _directory(self) -> ScriptDirectory:
        return ScriptDirectory(str(self.scripts))


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Have others who upgrade wait and find it done: on Galera those of this node; SQLite does so anyway."""
    match connection.dialect.name:
        case "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('roost upgrade'))")
            for setting in WHOLE_TABLES:  # which upgrades may copy
                connection.exec_driver_sql(f"SET LOCAL {setting} = on")
            yield
        case "mysql" | "mariadb":
            connection.exec_driver_sql(f"SELECT GET_LOCK('roost upgrade', {_UPGRADE_SECONDS})")
            try:
                yield
            finally:
                if not connection.invalidated:  # with a lost connection the lock is gone as well
                    connection.exec_driver_sql("SELECT RELEASE_LOCK('roost upgrade')")
        case _:
            yield


def _knows(scripts: ScriptDirectory, revision: str) -> bool:
    try:
        return scripts.get_revision(revision) is not None
    except CommandError:
        return False
