"""What can go wrong with records.

RecordsError
├── RecordsUnavailable    the file or database cannot be opened, read or written
├── RecordRefused         this run or attempt cannot be recorded
├── DamagedRecords        what is stored is not a record
└── SearchUnsupported     this backend cannot search
"""

from roost.model.errors import OperatorError


class RecordsError(OperatorError):
    """Any failure of the records."""


class RecordsUnavailable(RecordsError):
    """The file or database cannot be opened, read or written."""


class RecordRefused(RecordsError):
    """A run or attempt cannot be recorded, nor can what was to be written with it."""


class DamagedRecords(RecordsError):
    """What is stored is not a record. Nothing is skipped: it must be repaired or moved away by hand."""


class SearchUnsupported(RecordsError):
    """This backend cannot search."""
