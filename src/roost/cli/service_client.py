"""The client by which commands ask a service, and the errors that it answers with."""

import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from roost.cli.connection import Connection, connected_to
from roost.model.errors import OperatorError
from roost.model.transport_faults import fault_of

SECONDS = 60.0
"""Seconds that a service has for an answer."""

PAGE = 1000
"""Entries of a list that are read at once."""

ATTEMPTS = 4
"""Times that a request with a key is sent in all, while nobody tells whether it was carried out."""

_NOT_FOUND = 404
_SERVER_ERROR = 500

_UNTOLD = ("roost.outcome_unknown", "roost.idempotency_key_in_work")
"""Codes of answers that do not tell whether the request was carried out."""

_NO_OPERATION = "roost.no_operation"
"""The code of an answer to a path that the service does not have. Outside of ``/v1`` there is no code."""

F = TypeVar("F", bound=Callable[..., Any])


def part_of_path(name: str) -> str:
    """A name as a part of a path. Raises `OperatorError` for one that would lead to another path."""
    if name in ("", ".", ".."):
        raise OperatorError(f"{name!r} is no name")
    return quote(name, safe="")


class ServiceRefused(OperatorError):
    """A service refuses what is asked.

    ``status`` is that of its response, ``answer`` its body, ``error`` the first error in it.
    """

    def __init__(self, status: int, text: str, answer: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.answer = answer or {}

    @property
    def error(self) -> Mapping[str, Any]:
        errors: Sequence[Mapping[str, Any]] = self.answer.get("errors", ())
        return errors[0] if errors else {}


class _Untold(OperatorError):
    """A service has not told whether it carried a request out."""


class Unreached(OperatorError):
    """A service was not reached, so that it has not carried a request out."""


class ServiceFailed(OperatorError):
    """A service answers that it cannot do what is asked now. ``answer`` is the body of its response."""

    def __init__(self, text: str, answer: Any) -> None:
        super().__init__(text)
        self.answer = answer


class ServiceClient:
    """Asks a service over HTTP. ``seconds``: the time that it has for an answer. ``pause`` waits for seconds.

    Each POST has a key (`roost.web.idempotency`), and is sent again with it while nobody tells whether it was
    carried out.

    Raises `ServiceRefused`, `ServiceFailed`, `Unreached`, and `OperatorError` if it does not answer so.
    """

    def __init__(
        self, connection: Connection, seconds: float = SECONDS, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.connection = connection
        self._seconds = seconds
        self._pause = pause
        self._headers: dict[str, str] | None = None
        self._trusted: ssl.SSLContext | bool = True

    def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Any:
        """The JSON of the response, None if it has none. Parameters that are None are left out."""
        if self._headers is None:
            self._headers = self.connection.headers()
            self._trusted = self.connection.trusted()
        if method == "POST":
            return self._keyed(path, body, query, {**self._headers, "Idempotency-Key": str(uuid.uuid4())})
        return self._once(method, path, body, query, self._headers)

    def _keyed(
        self, path: str, body: object, query: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> Any:
        """The JSON of the response to a POST with a key, which is sent until its fate is told."""
        untold = False
        failure: OperatorError
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._once("POST", path, body, query, headers)
            except _Untold as error:
                untold, failure = True, error
            except (Unreached, ServiceFailed) as error:
                # Of the attempt that was sent before, this one tells nothing.
                if not untold:
                    raise
                failure = error
            if left:
                self._pause(2.0 ** (ATTEMPTS - 1 - left))
        raise OperatorError(
            f"{failure}; whether the request was carried out is not known: look what is there before you "
            "make it again"
        ) from failure

    def _once(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> Any:
        # Imported only here: its import takes longer than that of the command.
        import httpx

        chosen = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (query or {}).items()
            if value is not None
        }
        try:
            with httpx.Client(timeout=self._seconds, **self.connection.way(self._trusted)) as client:
                answer = client.request(
                    method, f"{self.connection.url}{path}", json=body, params=chosen, headers=headers
                )
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            is_sent = isinstance(error, httpx.TransportError) and not isinstance(
                error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)
            )
            kind = _Untold if is_sent and method == "POST" else Unreached
            raise kind(f"{self.connection} does not answer: {fault_of(error)}") from error
        try:
            decoded = msgspec.json.decode(answer.content) if answer.content else None
        except msgspec.DecodeError as error:
            # A proxy may give up a request that the service behind it carries out.
            is_untold = answer.status_code >= _SERVER_ERROR and method == "POST"
            text = f"{self.connection.place} is no {self.connection.service}: {error}"
            raise (_Untold(text) if is_untold else OperatorError(text)) from error
        if answer.is_success:
            return decoded
        errors = decoded.get("errors") if isinstance(decoded, dict) else None
        text = errors[0]["detail"] if errors else f"{method} {path} answers {answer.status_code}"
        if errors and errors[0].get("code") in _UNTOLD:
            raise _Untold(f"{self.connection} answers {answer.status_code}: {text}")
        if answer.status_code >= _SERVER_ERROR:
            raise ServiceFailed(f"{self.connection} answers {answer.status_code}: {text}", decoded)
        if answer.status_code == _NOT_FOUND and not _is_of_operation(errors):
            raise OperatorError(
                f"{self.connection.place} ({self.connection.origin}) is no "
                f"{self.connection.service}, or an older one: it has no {method} {path}"
            )
        raise ServiceRefused(answer.status_code, text, decoded if errors else None)

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


def _is_of_operation(errors: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether an operation of the service made these errors, and not the lack of one."""
    return bool(errors) and errors[0].get("code") not in (None, _NO_OPERATION)  # type: ignore[index]


def with_conductor(command: F) -> F:
    """Give a command the options of a conductor, and its client as the argument ``conductor``."""

    @wraps(command)
    def run(*arguments: Any, connection: Connection, **named: Any) -> Any:
        return command(*arguments, conductor=ServiceClient(connection), **named)

    return connected_to("conductor")(run)  # type: ignore[return-value]
