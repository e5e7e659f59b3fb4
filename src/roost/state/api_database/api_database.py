"""The options of the conductors' database, in group ``api_database``."""

from oslo_config import cfg

from roost.process.option_source import Source
from roost.storage import DatabaseUrl, configured_url

GROUP = "api_database"

OPTIONS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="This is the SQLAlchemy URL of the conductors' API database: requests, cells, host aggregates, "
        "server groups, node journals. It may be the database of placement.",
    ),
]


def api_database_url(source: Source) -> DatabaseUrl | None:
    """Return the URL of the API database; None if it is not configured. Raises `OperatorError`."""
    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    return configured_url(conf[GROUP].connection, source, GROUP)
