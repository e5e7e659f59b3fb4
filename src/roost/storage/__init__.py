"""Databases: connections, reads and writes off the event loop, schemas.

database            one database: threads of short reads, of long reads and of writes
database_url        the URL of a database, as an option gives it, which never prints its secrets
refused_writes      checks whether a full database takes writes again, and makes room for them
group_commit        writes that wait at the same time share a transaction
transactions        functions that are the statements of a transaction, bound to their arguments
batches             writes of one type that wait at the same time share their statements
engine              opening and set-up of connections, and their time limits
psycopg_connection  PostgreSQL connections that close when the server does not answer in time
statements          long lists of names in several statements; several statements in one round trip
row_inserts         inserts of many rows, and of rows that other transactions may insert too
driver_errors       the meaning of a driver's error for its transaction
schema              one room's tables in a database: created and upgraded by Alembic, checked at start
identity            the uuid of a database, and its incarnation, which a restore raises
errors              the tree of this room's errors
"""

from roost.storage.database import Database
from roost.storage.database_url import DatabaseUrl, as_url, configured_url
from roost.storage.driver_errors import driver_message, is_duplicate_key, table_refusing
from roost.storage.engine import ANSWER_SECONDS, COMMAND_ANSWER_SECONDS
from roost.storage.errors import (
    ConflictRolledBack,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseMisconfigured,
    DatabaseReadOnly,
    DatabaseRefused,
    DatabaseUnavailable,
    ForeignTables,
    OutcomeUnknown,
    SchemaTooNew,
    SchemaTooOld,
    StorageError,
)
from roost.storage.identity import DatabaseIdentity, identity_table, read_identity
from roost.storage.refused_writes import check_writes, make_room
from roost.storage.row_inserts import insert_missing, insert_rows
from roost.storage.schema import EXACT, Schema
from roost.storage.statements import (
    NAMES_PER_STATEMENT,
    deferred_exists,
    in_batches,
    one_of,
    one_of_constants,
    pipelined,
)
from roost.storage.transactions import Transaction, entering, short_read, states_entered, transaction

__all__ = [
    "ANSWER_SECONDS",
    "COMMAND_ANSWER_SECONDS",
    "EXACT",
    "NAMES_PER_STATEMENT",
    "ConflictRolledBack",
    "Database",
    "DatabaseDamaged",
    "DatabaseFull",
    "DatabaseIdentity",
    "DatabaseMisconfigured",
    "DatabaseReadOnly",
    "DatabaseRefused",
    "DatabaseUnavailable",
    "DatabaseUrl",
    "ForeignTables",
    "OutcomeUnknown",
    "Schema",
    "SchemaTooNew",
    "SchemaTooOld",
    "StorageError",
    "Transaction",
    "as_url",
    "check_writes",
    "configured_url",
    "deferred_exists",
    "driver_message",
    "entering",
    "identity_table",
    "in_batches",
    "insert_missing",
    "insert_rows",
    "is_duplicate_key",
    "make_room",
    "one_of",
    "one_of_constants",
    "pipelined",
    "read_identity",
    "short_read",
    "states_entered",
    "table_refusing",
    "transaction",
]
