"""Facts of a database for the manifest of a backup, read in one snapshot."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from sqlalchemy.engine import Connection

from roost.ledger import SCHEMA as LEDGER
from roost.ledger.load import head
from roost.server.backup.errors import BackupError
from roost.server.backup.roles import SCHEMAS
from roost.storage import Database, DatabaseIdentity, read_identity
from roost.storage.identity import has_identity

T = TypeVar("T")


class DatabaseFacts(NamedTuple):
    """Revisions, identity and newest commit of a database.

    ``revisions``: the revision of each schema, by its name. ``identity``: None if the tables are older than
    identities. ``version``: the newest commit; None without a ledger.
    """

    revisions: dict[str, str]
    identity: DatabaseIdentity | None
    version: int | None

    @property
    def up_to_date(self) -> bool:
        """Return whether all tables are at the newest revision, so that this program can verify them."""
        return all(SCHEMAS[name].newest == revision for name, revision in self.revisions.items())


class BackupSnapshot(NamedTuple):
    """A database, and a connection to it whose transaction sees one snapshot."""

    database: Database
    connection: Connection
    facts: DatabaseFacts


def in_snapshots(databases: Sequence[Database], work: Callable[[Sequence[BackupSnapshot]], T]) -> T:
    """Run ``work`` with one snapshot of each database, taken one right after the other in this order.

    Raises:
        StorageError: a database cannot be read, or its tables are at a revision that this program lacks.
        BackupError: a database has no tables of Roost.
    """

    def take(left: Sequence[Database], taken: Sequence[BackupSnapshot]) -> T:
        if not left:
            return work(taken)
        first, *others = left
        return first.read_now(
            lambda connection: take(
                others, [*taken, BackupSnapshot(first, connection, _facts(first, connection))]
            )
        )

    return take(databases, [])


def _facts(database: Database, connection: Connection) -> DatabaseFacts:
    revisions = {
        name: revision
        for name, schema in SCHEMAS.items()
        if (revision := schema.revision_in(connection)) is not None
    }
    if not revisions:
        raise BackupError(f"database {database} has no tables of Roost")
    for name, revision in revisions.items():
        if revision not in SCHEMAS[name].revisions:
            raise SCHEMAS[name].unknown(database, revision)
    return DatabaseFacts(
        revisions,
        read_identity(connection) if has_identity(connection) else None,
        head(connection) if LEDGER.name in revisions else None,
    )
