"""The limits of one serving process, as options of the group ``overload``."""

import msgspec
from oslo_config import cfg

GROUP = "overload"

MIB = 2**20

OPTIONS = [
    cfg.IntOpt(
        "connections",
        default=4096,
        min=1,
        help="Connections that a process serves at once. Further ones wait in the listen queue of the kernel "
        "until one is closed.",
    ),
    cfg.IntOpt(
        "reads",
        default=1000,
        min=1,
        help="Reads that a process has in flight at once. A further one gets status 503 at once.",
    ),
    cfg.IntOpt(
        "writes",
        default=1000,
        min=1,
        help="Writes that a process has in flight at once, most of which wait for their commit. A further "
        "one gets status 503 at once.",
    ),
    cfg.IntOpt(
        "body_mebibytes",
        default=64,
        min=1,
        help="MiB that the bodies of the requests in flight may have together. A request beyond that gets "
        "status 503 at once.",
    ),
    cfg.IntOpt(
        "answer_mebibytes",
        default=256,
        min=1,
        help="MiB of long answers that may wait for slow clients. While there is more, reads get status 503 "
        "at once; writes do not.",
    ),
    cfg.IntOpt(
        "idle_seconds",
        default=30,
        min=1,
        max=60,
        help="A connection on which no whole head of a request arrives for this many seconds is closed: one "
        "that is silent, sends its head slowly, or was kept alive and is not used.",
    ),
    cfg.FloatOpt(
        "body_seconds",
        default=20.0,
        min=0.1,
        help="A request whose body has not arrived after this many seconds gets status 408, and its "
        "connection is closed.",
    ),
    cfg.FloatOpt(
        "send_seconds",
        default=30.0,
        min=0.1,
        help="A connection whose client takes nothing of an answer for this many seconds is closed; of a "
        "long answer it must take 256 KiB in this time, and 1 MiB a second on average.",
    ),
    cfg.FloatOpt(
        "query_share",
        default=0.25,
        min=0.01,
        max=1.0,
        help="While writes are under way, queries that are computed beside them take at most this share of "
        "time.",
    ),
    cfg.IntOpt(
        "query_processes",
        default=2,
        min=1,
        help="Expensive queries that are computed at once, each in a process of its own with a low priority.",
    ),
    cfg.IntOpt(
        "query_waiting",
        default=500,
        min=0,
        help="Queries that may wait for their share or for a process, each. A further one gets status 503 at "
        "once.",
    ),
    cfg.FloatOpt(
        "query_seconds",
        default=30.0,
        min=1.0,
        help="An expensive query that takes longer gets status 400; a query that waits longer gets 503.",
    ),
    cfg.IntOpt(
        "query_mebibytes",
        default=1024,
        min=16,
        help="MiB that an expensive query may take beside the memory that it shares. One that needs more "
        "gets status 400.",
    ),
]


class Limits(msgspec.Struct, frozen=True):
    """The limits of one process. `OPTIONS` says what each means and what exceeding it does.

    ``body_bytes``, ``answer_bytes`` and ``query_bytes`` are in bytes; times are in seconds.
    """

    connections: int = 4096
    reads: int = 1000
    writes: int = 1000
    body_bytes: int = 64 * MIB
    answer_bytes: int = 256 * MIB
    idle_seconds: int = 30
    body_seconds: float = 20.0
    send_seconds: float = 30.0
    query_share: float = 0.25
    query_processes: int = 2
    query_waiting: int = 500
    query_seconds: float = 30.0
    query_bytes: int = 1024 * MIB


def limits_from(conf: cfg.ConfigOpts) -> Limits:
    """Read the limits from a configuration in which `OPTIONS` are registered."""
    group = conf[GROUP]
    return Limits(
        connections=group.connections,
        reads=group.reads,
        writes=group.writes,
        body_bytes=group.body_mebibytes * MIB,
        answer_bytes=group.answer_mebibytes * MIB,
        idle_seconds=group.idle_seconds,
        body_seconds=group.body_seconds,
        send_seconds=group.send_seconds,
        query_share=group.query_share,
        query_processes=group.query_processes,
        query_waiting=group.query_waiting,
        query_seconds=group.query_seconds,
        query_bytes=group.query_mebibytes * MIB,
    )
