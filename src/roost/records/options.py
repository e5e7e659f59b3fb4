"""The options of the records, in group ``records``."""

from typing import Literal

from roost.process.options import OptionStruct, option
from roost.records.queue import QUEUE_LIMIT


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
