"""What can go wrong with a database.

StorageError
├── DatabaseUnavailable   it cannot be opened or reached
│   ├── OutcomeUnknown    it went away during a commit
│   ├── DatabaseFull      its disk or its quota has no space left
│   ├── DatabaseReadOnly  it takes no writes
│   ├── DatabaseDamaged   its files are damaged
│   └── DatabaseRefused   it refuses a statement: a table or a right is missing, or a rule is broken
├── SchemaTooNew          a newer Roost has written it
└── SchemaTooOld          it must be upgraded first
"""

from roost.model.errors import OperatorError


class StorageError(OperatorError):
    """Any failure of a database. ``summary``: a sentence for clients, without addresses and names."""

    summary = "The database cannot be reached or is busy; try again."


class DatabaseUnavailable(StorageError):
    """The database cannot be opened or reached."""


class OutcomeUnknown(DatabaseUnavailable):
    """The database went away while a transaction was being committed: all of it is written, or nothing.

    It may even be written later, by a server that has not noticed yet that nobody waits for it.
    """


class DatabaseFull(DatabaseUnavailable):
    """The disk or a quota of the database has no space left. Nothing was written."""

    summary = "The database has no space left; nothing was written."


class DatabaseReadOnly(DatabaseUnavailable):
    """The database takes no writes: a standby, or a file without the right to write. Nothing was written."""

    summary = "The database takes no writes now; nothing was written."


class DatabaseDamaged(DatabaseUnavailable):
    """The files of the database are damaged."""

    summary = "The database is damaged."


class DatabaseRefused(DatabaseUnavailable):
    """The database refuses a statement of this program. Nothing was written.

    A table, a column or a right is missing, or a rule of a table is broken that this program does not know.
    """

    summary = "The database refuses the statements of this service; nothing was written."


class SchemaTooNew(StorageError):
    """The schema has a revision that this program does not know."""


class SchemaTooOld(StorageError):
    """The schema is missing or behind; ``roost db upgrade`` brings it up to date."""
