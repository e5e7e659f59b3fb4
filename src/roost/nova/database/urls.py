"""The URLs of Nova's databases, as nova.conf and ``cell_mappings`` have them."""

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from roost.storage import DatabaseMisconfigured

_DRIVERS: Final = {
    "mysql": "mysql+pymysql",
    "mysql+mysqldb": "mysql+pymysql",
    "mysql+mysqlconnector": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg2": "postgresql+psycopg",
}
_PLUGIN: Final = "plugin"
"""A parameter by which SQLAlchemy loads code, such as devstack's counter of statements."""


def usable_url(url: str) -> str:
    """Return a URL of Nova's for the driver that Roost has for the same kind of server, without plugins."""
    scheme, separator, rest = url.partition("://")
    address, mark, query = rest.partition("?")
    if mark and _PLUGIN in query:
        kept = [each for each in parse_qsl(query, keep_blank_values=True) if each[0] != _PLUGIN]
        query = urlencode(kept)
        mark = "?" if kept else ""
    return f"{_DRIVERS.get(scheme, scheme)}{separator}{address}{mark}{query}"


def filled(url: str, template: str) -> str:
    """Return the URL of a cell, with parts of ``template`` for ``{hostname}`` and the like.

    Without a template the URL must not have such places.

    Raises:
        DatabaseMisconfigured: a place cannot be filled. The text has no part of either URL.

    Source: ``CellMapping.format_db_url`` of Nova, which uses such a URL as it is.
    """
    if not template:
        if "{" in url:
            raise DatabaseMisconfigured(
                "the URL of the cell has places to be filled, but [database] connection is not set"
            )
        return url
    try:
        return url.format(**_parts(template))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        # Other errors of a format may quote the text of the URL.
        place = f" {error}" if isinstance(error, KeyError) else ""
        raise DatabaseMisconfigured(
            f"the URL of the cell has a place{place} that [database] connection does not fill"
        ) from None


def _parts(template: str) -> dict[str, object]:
    """Return the parts of a URL by their names in templates: with a number, for each of several servers."""
    url = urlsplit(template)
    parts: dict[str, object] = {
        "username": url.username,
        "password": url.password,
        "hostname": url.hostname,
        "port": url.port,
        "scheme": url.scheme,
        "query": url.query,
        "fragment": url.fragment,
        "path": url.path.lstrip("/"),
    }
    if "," in url.netloc:
        for number, server in enumerate(url.netloc.split(","), 1):
            one = urlsplit(f"//{server}")
            parts |= {
                f"username{number}": one.username or "",
                f"password{number}": one.password,
                f"hostname{number}": one.hostname,
                f"port{number}": one.port,
            }
    return parts
