"""The options of the records, in group ``records``, and the backend that they name."""

from pathlib import Path
from typing import Literal

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from roost.process.options import OptionStruct, option, options_by_group, read_struct
from roost.records.errors import RecordsError, RecordsUnavailable
from roost.records.jsonl import JsonLinesRecords
from roost.records.queue import QUEUE_LIMIT, RecordQueue
from roost.records.records import Records, Retention
from roost.records.sql import SqlRecords, cause
from roost.storage import Database, DatabaseUrl, StorageError


class RecordOptions(OptionStruct, frozen=True, group="records"):
    """The backend of the records, and how many it keeps."""

    backend: Literal["sql", "jsonl"] = option(
        "sql",
        choices={
            "sql": "a SQL database, with an index for each search",
            "jsonl": "files of JSON lines, which need nothing but a disk",
        },
        help="This backend stores the records of the scheduler and the conductors.",
    )
    connection: str = option(
        "sqlite:///roost-records.sqlite",
        secret=True,
        help="This is the SQLAlchemy URL of the database of backend sql. A missing SQLite file is created.",
    )
    path: str = option(
        "roost-records.jsonl",
        help="This is the file of backend jsonl; closed segments are beside it. A missing file is "
        "created, a missing folder is not.",
    )
    retention_days: float = option(
        30.0, help="Runs of the scheduler are kept for this many days. 0 sets no limit."
    )
    retention_runs: int = option(
        1_000_000, help="The last runs of the scheduler are kept, up to this number. 0 sets no limit."
    )
    queue_limit: int = option(
        QUEUE_LIMIT,
        min=1,
        help="This many runs and attempts may wait in memory to be written. Further ones are dropped and "
        "counted. A process that is killed loses the waiting ones.",
    )


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
