"""The durable history of scheduling: each run of the scheduler and each attempt to place an instance.

queue         takes the records of the scheduler and the conductors; it never fails and never waits
records       the interface of a backend: write, last, find, trim
search        the criteria by which runs are searched
rows          the form in which both backends store a run
sql           the backend in a SQL database, the default
summary       counts of the runs and attempts of a short time
flavors       the flavors of the newest runs
sql_batch     statements that write one batch of records
tables        the tables of ``sql``; their revisions are in ``migrations``
jsonl         the backend in files of JSON lines, which any tool can read
jsonl_reader  finds the runs of a search in lines that are read backwards
segments      the files of ``jsonl``: the one in use and closed ones
lines         one file: durable appends, repair after a kill
line_reader   reads a file of lines from either end
archive       moves old runs into compressed files, and back
redact        a request spec as plain data without its secrets
backend       opens the backend that the options name
errors        the errors of the records

A *run* is one call of `Scheduler.select_destinations`. An *attempt* is one claim of one host for one instance
and the end of the build there.
"""

from roost.records.backend import open_records
from roost.records.errors import (
    DamagedRecords,
    RecordRefused,
    RecordsError,
    RecordsUnavailable,
    UnknownRun,
)
from roost.records.queue import RecordQueue
from roost.records.records import Records, Retention, SearchableRecords
from roost.records.redact import redacted, spec_of
from roost.records.rows import RunWithAttempts
from roost.records.search import Search

__all__ = [
    "DamagedRecords",
    "RecordQueue",
    "RecordRefused",
    "Records",
    "RecordsError",
    "RecordsUnavailable",
    "Retention",
    "RunWithAttempts",
    "Search",
    "SearchableRecords",
    "UnknownRun",
    "open_records",
    "redacted",
    "spec_of",
]
