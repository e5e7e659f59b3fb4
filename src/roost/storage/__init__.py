"""Databases: opening them, reading and writing off the event loop, and keeping their schemas current.

database   one database: a reader thread, a writer thread, group commit, looks
lane       a thread for blocking calls, replaced when a call hangs
deadlines  deadlines for futures, with one timer
engine     how connections are opened and set up, and how long they wait
psycopg_connection  PostgreSQL connections that give up a server which says nothing
pipeline   statements that need not wait for each other's answers
conflicts  what a driver's error means for a transaction
exact      options of tables whose text compares exactly
schema     one room's tables in a database: created and upgraded by Alembic, checked at start
errors     what can go wrong
"""

from roost.storage.batches import AT_ONCE, in_batches
from roost.storage.conflicts import in_one_line, is_duplicate_key, table_refusing
from roost.storage.database import Database
from roost.storage.deadlines import Deadlines
from roost.storage.engine import ANSWER_SECONDS, PATIENT_SECONDS
from roost.storage.errors import (
    DatabaseDamaged,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseRefused,
    DatabaseUnavailable,
    OutcomeUnknown,
    SchemaTooNew,
    SchemaTooOld,
    StorageError,
)
from roost.storage.pipeline import gives_a_row, pipelined
from roost.storage.schema import Schema

__all__ = [
    "ANSWER_SECONDS",
    "AT_ONCE",
    "PATIENT_SECONDS",
    "Database",
    "DatabaseDamaged",
    "DatabaseFull",
    "DatabaseReadOnly",
    "DatabaseRefused",
    "DatabaseUnavailable",
    "Deadlines",
    "OutcomeUnknown",
    "Schema",
    "SchemaTooNew",
    "SchemaTooOld",
    "StorageError",
    "gives_a_row",
    "in_batches",
    "in_one_line",
    "is_duplicate_key",
    "pipelined",
    "table_refusing",
]
