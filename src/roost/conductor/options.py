"""The options of the conductors, in group ``conductor``."""

from oslo_config import cfg

GROUP = "conductor"

OPTIONS = [
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        help="An instance is tried on at most this many hosts, the first included.",
    ),
]
