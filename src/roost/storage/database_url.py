"""The URL of a database, which never prints its secrets."""

import re
import shlex
from difflib import get_close_matches

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from roost.model.secrets import HIDDEN, PLAIN_QUERY, safe_url
from roost.process.option_source import Source
from roost.storage.errors import DatabaseMisconfigured

DRIVERS = ("sqlite", "postgresql+psycopg", "mysql+pymysql", "mariadb+pymysql")
"""The databases and drivers that Roost is tested with."""

LARGEST_PORT = 65535


class DatabaseUrl:
    """The URL of a database. Only `reveal` and `parsed` give the secrets in it.

    ``given_by``: the command-line options by which `roost db` uses the same database, such as
    ``--config-file roost.conf``; may be empty. None: not known.

    Raises:
        DatabaseMisconfigured: the text is no URL of a database.
    """

    __slots__ = ("_text", "given_by", "parsed")

    def __init__(self, text: str, given_by: str | None = None) -> None:
        self._text = text
        self.given_by = given_by
        self.parsed: URL = _parsed(text)

    def __str__(self) -> str:
        return safe_url(self._text)

    def __repr__(self) -> str:
        return f"DatabaseUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def is_sqlite(self) -> bool:
        """True for a SQLite file."""
        return self.parsed.get_backend_name() == "sqlite"

    def reveal(self) -> str:
        """The URL with its secrets."""
        return self._text

    def hide(self, message: str) -> str:
        """Return a message, as of a driver, without the secrets of the URL."""
        for secret in self._secrets():
            message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, message)
        return message

    def upgrade(self) -> str:
        """Return the shell command that creates or upgrades the tables of this database."""
        if self.given_by is not None:
            return f"'{' '.join(f'roost db upgrade {self.given_by}'.split())}'"
        if safe_url(self._text) == self._text:
            return f"'roost db upgrade --database {shlex.quote(self._text)}'"
        return "'roost db upgrade' with --database and its URL, or with --config-file and --section"

    def _secrets(self) -> set[str]:
        shown = {self.parsed.host, self.parsed.database, self.parsed.username}
        values = [self.parsed.password]
        for name, value in self.parsed.query.items():
            if name not in PLAIN_QUERY:
                values += [value] if isinstance(value, str) else value
        return {str(value) for value in values if value} - {str(each) for each in shown}


def as_url(url: DatabaseUrl | str) -> DatabaseUrl:
    """Return a URL as it is, or parse a text. Raises `DatabaseMisconfigured`."""
    return url if isinstance(url, DatabaseUrl) else DatabaseUrl(url)


def configured_url(text: DatabaseUrl | str | None, source: Source, group: str) -> DatabaseUrl | None:
    """Return the URL of the option ``connection`` of a group; None if it is not set.

    Raises:
        DatabaseMisconfigured: the text is no URL of a database.
    """
    if text is None or isinstance(text, DatabaseUrl):
        return text
    try:
        return DatabaseUrl(text, source.given_by(group, "connection"))
    except DatabaseMisconfigured as error:
        raise DatabaseMisconfigured(f"configuration: [{group}] connection: {error}") from None


def _parsed(text: str) -> URL:
    """Parse a URL. Raises `DatabaseMisconfigured`, whose text and cause repeat no secret."""
    scheme, separator, _ = text.partition("://")
    if not separator:
        raise _not_a_url(text, "write DIALECT+DRIVER://USER:PASSWORD@HOST:PORT/NAME, or sqlite:///FILE")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        reason = "what follows the colon is no port, or a password has a character to be written as %40"
        raise _not_a_url(text, reason) from None
    if url.port is not None and not 0 < url.port <= LARGEST_PORT:
        raise _not_a_url(text, f"its port is not between 1 and {LARGEST_PORT}")
    try:
        url.get_dialect()
    except ArgumentError:
        near = get_close_matches(scheme, DRIVERS, 1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(DRIVERS)}"
        raise DatabaseMisconfigured(f"no database or driver {scheme!r}: {hint}") from None
    if url.get_backend_name() == "sqlite" and (url.host or url.username or url.password or url.port):
        raise _not_a_url(text, "a SQLite file has no host: write sqlite:///FILE, or sqlite:////FILE from /")
    return url


def _not_a_url(text: str, reason: str) -> DatabaseMisconfigured:
    return DatabaseMisconfigured(f"not a database URL: {safe_url(text)!r}: {reason}")
