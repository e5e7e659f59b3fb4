"""Records: what the scheduler decided and why, kept durably and found again.

    queue        what the scheduler and conductors write to: never fails, never waits
    records      what a backend of records does: write, last, find, trim
    sql          in a SQL database: the default, and the only one that can search
    jsonl        in a file of JSON lines: nothing to set up, read with any tool
    lines        the file under it: durable appends, reading backwards, mending what a kill tore
    tables       the tables under ``sql``
    redact       a request spec as plain data without its secrets, and back
    options      the configuration, group ``records``
    backend      opens the backend that the configuration names
    errors       what can go wrong

A *run* is one run of the scheduler, an *attempt* one try to put one instance on one host.
"""

from roost.records.backend import open_records
from roost.records.errors import (
    DamagedRecords,
    RecordRefused,
    RecordsError,
    RecordsUnavailable,
    SearchUnsupported,
)
from roost.records.options import register_options
from roost.records.queue import RecordQueue
from roost.records.records import Records, Retention, RunWithAttempts
from roost.records.redact import redacted, spec_of

__all__ = [
    "DamagedRecords",
    "RecordQueue",
    "RecordRefused",
    "Records",
    "RecordsError",
    "RecordsUnavailable",
    "Retention",
    "RunWithAttempts",
    "SearchUnsupported",
    "open_records",
    "redacted",
    "register_options",
    "spec_of",
]
