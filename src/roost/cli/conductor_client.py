"""How commands reach a conductor's API: its URL, a token, and errors as one line."""

import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click
import msgspec

from roost.model.errors import OperatorError

SECONDS = 60.0
"""Seconds that the conductor has for an answer."""

PAGE = 1000
"""Entries of a list that are read at once."""

_SERVER_ERROR = 500

F = TypeVar("F", bound=Callable[..., Any])


def part_of_path(name: str) -> str:
    """A name as a part of a path. Raises `OperatorError` for one that would lead to another path."""
    if name in ("", ".", ".."):
        raise OperatorError(f"{name!r} is no name")
    return quote(name, safe="")


class ConductorRefused(OperatorError):
    """The conductor refuses what is asked. ``status`` is that of its response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ConductorClient:
    """Asks a conductor over HTTP.

    ``ca_file``: the authorities of its certificate, in PEM; None for those of the system.

    Raises `ConductorRefused`, and `OperatorError` if no conductor answers.
    """

    def __init__(self, url: str, token: str | None, ca_file: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._ca_file = ca_file
        self._trusted: ssl.SSLContext | bool | None = None

    def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Any:
        """The JSON of the response, None if it has none. Parameters that are None are left out."""
        # Imported only here: its import takes longer than that of the command.
        import httpx

        if self._token is None:
            self._token = keystone_token()
        chosen = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (query or {}).items()
            if value is not None
        }
        try:
            answer = httpx.request(
                method,
                f"{self.url}{path}",
                json=body,
                params=chosen,
                headers={"x-auth-token": self._token},
                timeout=SECONDS,
                verify=self._verify(),
            )
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise OperatorError(f"the conductor at {self.url} does not answer: {error}") from error
        try:
            decoded = msgspec.json.decode(answer.content) if answer.content else None
        except msgspec.DecodeError as error:
            raise OperatorError(f"{self.url} is no conductor: {error}") from error
        if answer.is_success:
            return decoded
        errors = decoded.get("errors") if isinstance(decoded, dict) else None
        text = errors[0]["detail"] if errors else f"{method} {path} answers {answer.status_code}"
        if answer.status_code >= _SERVER_ERROR:
            raise OperatorError(f"the conductor at {self.url} answers {answer.status_code}: {text}")
        raise ConductorRefused(answer.status_code, text)

    def _verify(self) -> ssl.SSLContext | bool:
        """Whom to trust, as httpx takes it. Raises `OperatorError` for a file that has no authorities."""
        if self._trusted is None:
            self._trusted = True
            if self._ca_file is not None:
                try:
                    self._trusted = ssl.create_default_context(cafile=self._ca_file)
                except OSError as error:
                    raise OperatorError(
                        f"{self._ca_file} has no authorities that can be read: {error}"
                    ) from error
        return self._trusted

    def pages(self, path: str, key: str, query: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """The pages of a list, whose entries are under ``key``; the most at once that the query asks for."""
        wanted = query.get("limit")
        left = wanted if isinstance(wanted, int) else None
        marker = None
        while True:
            size = PAGE if left is None else min(left, PAGE)
            page = self.ask("GET", path, query={**query, "limit": size, "marker": marker})
            yield page
            marker = page["next"]
            left = None if left is None else left - len(page[key])
            if marker is None or left == 0:
                return


def with_conductor(command: F) -> F:
    """Give a command the options of a conductor, and its client as the argument ``conductor``."""
    url = click.option(
        "--url",
        envvar="ROOST_URL",
        default="http://127.0.0.1:8780",
        show_default=True,
        help="Where the conductor is; or ROOST_URL.",
    )
    token = click.option(
        "--token",
        envvar="ROOST_TOKEN",
        help="A token; or ROOST_TOKEN. Without one Keystone is asked, as OS_AUTH_URL and the like say; "
        "without these it is `admin`.",
    )

    ca_file = click.option(
        "--ca-file",
        envvar="ROOST_CA_FILE",
        type=click.Path(path_type=Path),
        help="Authorities of the conductor's certificate, in PEM; or ROOST_CA_FILE.",
    )

    @wraps(command)
    def run(*arguments: Any, url: str, token: str | None, ca_file: Path | None, **named: Any) -> Any:
        try:
            return command(*arguments, conductor=ConductorClient(url, token, ca_file), **named)
        except ConductorRefused as error:
            click.echo(f"roost: {error}", err=True)
            raise SystemExit(1) from error

    return url(token(ca_file(run)))  # type: ignore[return-value]


def keystone_token() -> str:
    """A token by the environment variables of OpenStack's clients; `admin` without OS_AUTH_URL.

    Raises `OperatorError` if Keystone gives none.
    """
    found = {name[3:].lower(): value for name, value in os.environ.items() if name.startswith("OS_")}
    if "auth_url" not in found:
        return found.get("token", "admin")
    # Imported only here: the import is slow.
    from keystoneauth1 import exceptions, loading, session

    kind = found.get("auth_type", "password" if "password" in found else "v3applicationcredential")
    try:
        loader: Any = loading.get_plugin_loader(kind)
        known = {option.dest for option in loader.get_options()}
        values = {name: value for name, value in found.items() if name in known}
        plugin = loader.load_from_options(**values)
        verify = found.get("cacert", True)
        token = plugin.get_token(session.Session(auth=plugin, verify=verify, timeout=SECONDS))
    except (exceptions.ClientException, TypeError, ValueError) as error:
        raise OperatorError(f"Keystone at {found['auth_url']} gives no token: {error}") from error
    if token is None:
        raise OperatorError(f"Keystone at {found['auth_url']} gives no token")
    return str(token)
