"""What can go wrong in the ledger, besides a command's own refusal.

LedgerError
├── LedgerBusy   other writers were first too many times in a row
└── Outrun       another writer took the sequence number (inside the ledger only)
"""


class LedgerError(Exception):
    """Any failure of the ledger."""


class LedgerBusy(LedgerError):
    """Other writers were first too many times in a row; nothing was written, trying again may help."""


class Outrun(LedgerError):
    """Another writer appended this sequence number first; nothing was written."""
