"""The options of the records, in group ``records``."""

from oslo_config import cfg

from roost.records.queue import QUEUE_LIMIT

GROUP = "records"

OPTIONS = [
    cfg.StrOpt(
        "backend",
        default="sql",
        choices=[
            ("sql", "a SQL database, with an index for each search"),
            ("jsonl", "files of JSON lines, which need nothing but a disk"),
        ],
        help="This backend stores the records of the scheduler and the conductors.",
    ),
    cfg.StrOpt(
        "connection",
        default="sqlite:///roost-records.sqlite",
        secret=True,
        help="This is the SQLAlchemy URL of the database of backend sql. A missing SQLite file is created.",
    ),
    cfg.StrOpt(
        "path",
        default="roost-records.jsonl",
        help="This is the file of backend jsonl; closed segments are beside it. A missing file is "
        "created, a missing folder is not.",
    ),
    cfg.FloatOpt(
        "retention_days",
        default=30.0,
        help="Runs of the scheduler are kept for this many days. 0 sets no limit.",
    ),
    cfg.IntOpt(
        "retention_runs",
        default=1_000_000,
        help="The last runs of the scheduler are kept, up to this number. 0 sets no limit.",
    ),
    cfg.IntOpt(
        "queue_limit",
        default=QUEUE_LIMIT,
        min=1,
        help="This many runs and attempts may wait in memory to be written. Further ones are dropped and "
        "counted. A process that is killed loses the waiting ones.",
    ),
]


def register_options(conf: cfg.ConfigOpts) -> None:
    """Register the options with ``conf``."""
    conf.register_opts(OPTIONS, group=GROUP)
