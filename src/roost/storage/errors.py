"""What can go wrong with a database.

StorageError
├── DatabaseUnavailable   it cannot be opened or reached
│   └── OutcomeUnknown    it went away during a commit
├── SchemaTooNew          a newer Roost has written it
└── SchemaTooOld          it must be upgraded first
"""

from roost.model.errors import OperatorError


class StorageError(OperatorError):
    """Any failure of a database."""


class DatabaseUnavailable(StorageError):
    """The database cannot be opened or reached."""


class OutcomeUnknown(DatabaseUnavailable):
    """The database went away while a transaction was being committed: all of it is written, or nothing.

    It may even be written later, by a server that has not noticed yet that nobody waits for it.
    """


class SchemaTooNew(StorageError):
    """The schema has a revision that this program does not know."""


class SchemaTooOld(StorageError):
    """The schema is missing or behind; ``roost db upgrade`` brings it up to date."""
