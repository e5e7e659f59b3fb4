"""The URL of a database as an option of a configuration gives it."""

from roost.storage import DatabaseMisconfigured, DatabaseUrl
from roost.web.auth import Source


def configured_url(text: str | None, source: Source, group: str) -> DatabaseUrl | None:
    """The URL of the option ``connection`` of a group; None if it is not set.

    Raises:
        DatabaseMisconfigured: it is no URL of a database.
    """
    if text is None:
        return None
    try:
        return DatabaseUrl(text, source.given_by(group, "connection"))
    except DatabaseMisconfigured as error:
        raise DatabaseMisconfigured(f"configuration: [{group}] connection: {error}") from None
