"""Opens the backend that the options name."""

from pathlib import Path

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from roost.process.options import options_by_group, read_struct
from roost.records.errors import RecordsError, RecordsUnavailable
from roost.records.jsonl import JsonLinesRecords
from roost.records.options import RecordOptions
from roost.records.queue import RecordQueue
from roost.records.records import Records, Retention
from roost.records.sql import SqlRecords, cause
from roost.storage import Database, DatabaseUrl, StorageError


async def open_records(conf: cfg.ConfigOpts) -> RecordQueue:
    """Open a queue to the backend that group ``records`` of ``conf`` names; the caller closes it.

    Raises:
        RecordsUnavailable: an option has no usable value, or the file or database cannot be opened.
    """
    for group, some in options_by_group(RecordOptions).items():
        conf.register_opts(some, group)
    try:
        options = read_struct(conf, RecordOptions)
        retention = Retention(options.retention_days, options.retention_runs)
    except (cfg.ConfigFileValueError, ValueError) as error:
        raise RecordsUnavailable(f"cannot open records, options [records]: {error}") from error
    records: Records
    if options.backend == "jsonl":
        records = JsonLinesRecords(Path(options.path), retention)
    else:
        records = await open_sql_records(options.connection, retention)
    return RecordQueue(records, options.queue_limit)


async def open_sql_records(url: DatabaseUrl | str, retention: Retention) -> SqlRecords:
    """Open records in the database at a SQLAlchemy URL.

    Raises:
        RecordsUnavailable: the database cannot be opened, or its tables are missing or of another version.
    """
    try:
        database = Database(url)
    except (StorageError, SQLAlchemyError, ImportError) as error:
        raise RecordsUnavailable(f"cannot keep records: {cause(error)}") from error
    try:
        return SqlRecords(database, retention)
    except RecordsError:
        await database.close()
        raise
