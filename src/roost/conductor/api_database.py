"""The options of the conductors' database, in group ``api_database``."""

from oslo_config import cfg

GROUP = "api_database"

OPTIONS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="This is the SQLAlchemy URL of the conductors' API database: cells, host aggregates, server "
        "groups, node journals. `roost scheduler` reads it.",
    ),
]
