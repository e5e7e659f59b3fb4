"""What a backup's manifest says of a database, read in one snapshot."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from sqlalchemy.engine import Connection

from roost.ledger import SCHEMA as LEDGER
from roost.ledger.load import head
from roost.server.backup.errors import BackupError
from roost.server.backup.roles import SCHEMAS
from roost.storage import Database, DatabaseIdentity, SchemaTooNew, read_identity
from roost.storage.identity import has_identity

T = TypeVar("T")


class Facts(NamedTuple):
    """``revisions`` of the schemas, by name; ``version``: the newest commit, None without a ledger."""

    revisions: dict[str, str]
    identity: DatabaseIdentity | None
    version: int | None

    @property
    def up_to_date(self) -> bool:
        """Whether all tables are at the newest revision, so that this program can verify them."""
        return all(SCHEMAS[name].newest == revision for name, revision in self.revisions.items())


class Snapshot(NamedTuple):
    """A database, and a connection to it whose transaction sees one snapshot."""

    database: Database
    connection: Connection
    facts: Facts


def in_snapshots(databases: Sequence[Database], work: Callable[[Sequence[Snapshot]], T]) -> T:
    """Run ``work`` with one snapshot of each database, taken one right after the other in this order.

    Raises:
        StorageError: a database cannot be read, or a newer Roost has written it.
        BackupError: a database has no tables of Roost.
    """

    def take(left: Sequence[Database], taken: Sequence[Snapshot]) -> T:
        if not left:
            return work(taken)
        first, *others = left
        return first.read_now(
            lambda connection: take(others, [*taken, Snapshot(first, connection, _facts(first, connection))])
        )

    return take(databases, [])


def _facts(database: Database, connection: Connection) -> Facts:
    revisions = {
        name: revision
        for name, schema in SCHEMAS.items()
        if (revision := schema.revision_in(connection)) is not None
    }
    if not revisions:
        raise BackupError(f"database {database} has no tables of Roost")
    for name, revision in revisions.items():
        if revision not in SCHEMAS[name].revisions:
            raise SchemaTooNew(
                f"database {database} is at {name} revision {revision}, newer than this program, which "
                f"knows up to {SCHEMAS[name].newest}: run a newer Roost"
            )
    return Facts(
        revisions,
        read_identity(connection) if has_identity(connection) else None,
        head(connection) if LEDGER.name in revisions else None,
    )
