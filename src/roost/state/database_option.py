"""The URL of a database from an option of the configuration."""

from roost.storage import DatabaseMisconfigured, DatabaseUrl
from roost.web.auth import Source


def configured_url(text: str | None, source: Source, group: str) -> DatabaseUrl | None:
    """Return the URL of the option ``connection`` of a group; None if it is not set.

    Raises:
        DatabaseMisconfigured: the text is no URL of a database.
    """
    if text is None:
        return None
    try:
        return DatabaseUrl(text, source.given_by(group, "connection"))
    except DatabaseMisconfigured as error:
        raise DatabaseMisconfigured(f"configuration: [{group}] connection: {error}") from None
