"""Errors of databases and schemas.

StorageError
├── DatabaseUnavailable   it cannot be opened or reached
│   ├── DatabaseMisconfigured  its URL, its driver or its name is wrong: no waiting helps
│   ├── OutcomeUnknown    the connection was lost or timed out during a COMMIT
│   ├── DatabaseFull      its disk or its quota has no space left
│   ├── DatabaseReadOnly  it takes no writes
│   ├── DatabaseDamaged   its files are damaged
│   ├── DatabaseRefused   a table or a privilege is missing, or a constraint is violated
│   ├── ConflictRolledBack  other transactions were preferred each time
│   └── ConnectionLost    the connection was lost before the COMMIT
├── ForeignTables         the database is another program's
├── SchemaTooNew          a newer Roost has upgraded its tables
└── SchemaTooOld          its tables must be upgraded first
"""

from typing import ClassVar

from roost.model.errors import OperatorError


class StorageError(OperatorError):
    """Any failure of a database.

    ``summary``: a sentence for clients; it names no address and no database. ``outcome_known``: nothing was
    written, so that the same request may be sent again.
    """

    summary = "The database cannot be reached or is busy; try again."
    outcome_known: ClassVar[bool] = True


class DatabaseUnavailable(StorageError):
    """The database cannot be opened or reached."""


class DatabaseMisconfigured(DatabaseUnavailable):
    """The URL has to be corrected; no waiting helps.

    It is malformed, its driver cannot be loaded, or the server refuses the database, the user or a parameter
    that it names.
    """


class OutcomeUnknown(DatabaseUnavailable):
    """The answer to a COMMIT is missing: the transaction is written as a whole, or not at all.

    The server may also write it later than this error, while it has not noticed that the client is gone.
    """

    summary = "The database has not answered whether it wrote the change."
    outcome_known = False


class ConflictRolledBack(DatabaseUnavailable):
    """A transaction was rolled back in favour of another one each time that it was run. Nothing was written.

    The reasons are a deadlock, Galera's certification, or that both insert the same row. `Database` runs the
    transaction again; this error ends the last attempt.
    """


class ConnectionLost(DatabaseUnavailable):
    """The connection was lost before the COMMIT. Nothing was written."""


class DatabaseFull(DatabaseUnavailable):
    """The disk or a quota of the database is exhausted. Nothing was written."""

    summary = "The database has no space left; nothing was written."


class DatabaseReadOnly(DatabaseUnavailable):
    """The database takes no writes: a standby, or a file without the right to write. Nothing was written."""

    summary = "The database takes no writes now; nothing was written."


class DatabaseDamaged(DatabaseUnavailable):
    """The files of the database are damaged."""

    summary = "The database is damaged."


class DatabaseRefused(DatabaseUnavailable):
    """The database refuses a statement of this program. Nothing was written.

    A table, a column or a privilege is missing, or the row violates a constraint that Roost does not know.
    """

    summary = "The database refuses the statements of this service; nothing was written."


class ForeignTables(StorageError):
    """The database belongs to another program, whose tables have the names of Roost's."""


class SchemaTooNew(StorageError):
    """The schema has a revision that this program does not know."""


class SchemaTooOld(StorageError):
    """The schema is missing or behind; ``roost db upgrade`` brings it up to date."""
