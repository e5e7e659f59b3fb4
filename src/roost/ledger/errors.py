"""What can go wrong in the ledger, besides a command's own refusal.

LedgerError
├── Damaged      the tables name what is not there
├── LedgerBusy   other writers were first too many times in a row
└── Outrun       another writer took the sequence number (inside the ledger only)
"""

from roost.model.errors import OperatorError


class LedgerError(Exception):
    """Any failure of the ledger."""


class Damaged(LedgerError, OperatorError):
    """The tables name what is not there; nothing can be served from them."""


class LedgerBusy(LedgerError):
    """Other writers were first too many times in a row; nothing was written, trying again may help."""


class Outrun(LedgerError):
    """Another writer appended this sequence number first; nothing was written."""
