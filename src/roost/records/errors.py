"""The errors of the records.

RecordsError
├── RecordsUnavailable    the file or database cannot be opened, read or written
├── RecordRefused         this run or attempt cannot be recorded
├── UnknownRun            no run of an id is recorded
├── ArchiveError          an archive cannot be read or written
└── DamagedRecords        a stored row or line is not a record
"""

from roost.model.errors import OperatorError


class RecordsError(OperatorError):
    """The base of all errors of the records."""


class RecordsUnavailable(RecordsError):
    """The file or database cannot be opened, read or written."""


class RecordRefused(RecordsError):
    """A run or an attempt has a value that cannot be recorded. Nothing of its write is recorded."""


class DamagedRecords(RecordsError):
    """A stored row or line is not a record. Readers skip nothing: repair it or move it away by hand."""


class UnknownRun(RecordsError):
    """No run of this id is recorded, or it is no longer."""


class ArchiveError(RecordsError):
    """An archive of records cannot be read or written. Records that are not in it stay where they are."""
