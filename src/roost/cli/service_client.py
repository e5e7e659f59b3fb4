"""The client of commands for a service over HTTP, and its errors."""

import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from roost.cli.connection import ServiceConnection, connected_to
from roost.model.errors import OperatorError
from roost.model.text import fault_of

SECONDS = 60.0
"""Seconds that a service has for a response."""

PAGE = 1000
"""Entries of a page of a list."""

ATTEMPTS = 4
"""Most attempts of a request with an idempotency key, while no response tells its outcome."""

_NOT_FOUND = 404
_SERVER_ERROR = 500

_UNTOLD = ("roost.outcome_unknown", "roost.idempotency_key_in_work")
"""Codes of responses that do not tell whether the request was carried out."""

_NO_OPERATION = "roost.no_operation"
"""The code of the response to an unknown path. Outside of ``/v1`` it has no code."""

F = TypeVar("F", bound=Callable[..., Any])


def part_of_path(name: str) -> str:
    """Quote a name as a part of a path. Raises `OperatorError` for one that would lead to another path."""
    if name in ("", ".", ".."):
        raise OperatorError(f"{name!r} is no name")
    return quote(name, safe="")


class RequestRefused(OperatorError):
    """A service refused a request.

    ``status``: of the response. ``answer``: its body. ``error``: the first error in the body.
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
    """No response tells whether the service carried out a request."""


class Unreached(OperatorError):
    """A service was not reached, so it has not carried out the request."""


class ServiceFailed(OperatorError):
    """A service responds that it cannot carry out a request now. ``answer``: the body of the response."""

    def __init__(self, text: str, answer: Any) -> None:
        super().__init__(text)
        self.answer = answer


class ServiceClient:
    """Sends requests to a service over HTTP.

    ``seconds``: the time that the service has for a response. ``pause`` waits for seconds.

    Each POST has an idempotency key (`roost.web.idempotency`). It is sent again with its key while no
    response tells whether it was carried out.

    Raises `RequestRefused`, `ServiceFailed`, `Unreached`, and `OperatorError` for any other failure.
    """

    def __init__(
        self,
        connection: ServiceConnection,
        seconds: float = SECONDS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.connection = connection
        self._seconds = seconds
        self._pause = pause
        self._headers: dict[str, str] | None = None
        self._trusted: ssl.SSLContext | bool = True

    def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Any:
        """Send a request, and return the JSON of the response, or None. Parameters of None are left out."""
        if self._headers is None:
            self._headers = self.connection.headers()
            self._trusted = self.connection.trusted()
        if method == "POST":
            return self._keyed(path, body, query, {**self._headers, "Idempotency-Key": str(uuid.uuid4())})
        return self._once(method, path, body, query, self._headers)

    def _keyed(
        self, path: str, body: object, query: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> Any:
        """Send a POST with a key until a response tells its outcome, and return the JSON of that."""
        untold = False
        failure: OperatorError
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._once("POST", path, body, query, headers)
            except _Untold as error:
                untold, failure = True, error
            except (Unreached, ServiceFailed) as error:
                # This attempt was not sent, which tells nothing of earlier ones.
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
            # A proxy may fail a request that the service behind it still carries out.
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
        raise RequestRefused(answer.status_code, text, decoded if errors else None)

    def pages(self, path: str, key: str, query: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list, whose entries are under ``key``, up to the limit of the query."""
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
    """Return whether an operation of the service made these errors, not a path without operation."""
    return bool(errors) and errors[0].get("code") not in (None, _NO_OPERATION)  # type: ignore[index]


def with_conductor(command: F) -> F:
    """Add the options of a conductor to a command, which gets its client as ``conductor``."""

    @wraps(command)
    def run(*arguments: Any, connection: ServiceConnection, **named: Any) -> Any:
        return command(*arguments, conductor=ServiceClient(connection), **named)

    return connected_to("conductor")(run)  # type: ignore[return-value]
