"""The errors of the ledger. Commands refuse with errors of their own.

LedgerError
├── Damaged        rows of the tables refer to rows that do not exist, or have impossible numbers
├── LedgerBusy     other writers were first too many times in a row
└── SequenceTaken  another writer took the sequence number (inside the ledger only)
"""

from roost.model.errors import OperatorError


class LedgerError(Exception):
    """Any failure of the ledger."""


class Damaged(LedgerError, OperatorError):
    """Rows refer to rows that do not exist, or have impossible numbers. No fleet can be loaded from them."""


class LedgerBusy(LedgerError):
    """Other writers were first too many times in a row. Nothing was written; trying again may help."""


class SequenceTaken(LedgerError):
    """The database has another commit with the sequence number, or another commit before it.

    Nothing was written.
    """
