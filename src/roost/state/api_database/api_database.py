"""The options of the conductors' database, in group ``api_database``."""

from roost.process.option_source import Source
from roost.process.options import OptionStruct, option
from roost.storage import DatabaseUrl, configured_url


class ApiDatabaseOptions(OptionStruct, frozen=True, group="api_database"):
    """The URL of the conductors' database."""

    connection: str | None = option(
        None,
        secret=True,
        help="This is the SQLAlchemy URL of the conductors' API database: requests, cells, host aggregates, "
        "server groups, node journals. It may be the database of placement.",
    )


def api_database_url(source: Source) -> DatabaseUrl | None:
    """Return the URL of the API database; None if it is not configured. Raises `OperatorError`."""
    return configured_url(source.read(ApiDatabaseOptions).connection, source, ApiDatabaseOptions.group)
