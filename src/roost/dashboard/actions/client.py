"""Requests to the conductor with the token of a user: in this process, or over HTTP."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from roost.dashboard.options import DashboardOptions
from roost.model.errors import OperatorError
from roost.web.client_transport import http_client
from roost.web.dispatch import Application
from roost.web.errors import OutcomeUncertain, Unavailable

ANSWER_SECONDS: Final = 30.0
"""Seconds that the conductor has for an answer. After that the outcome of the request is not known."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_SERVER_ERROR = 500


class ConductorAnswer(NamedTuple):
    """The answer of the conductor.

    ``body``: decoded, None without one. ``request_id``: of the request, which the log and the event name.
    """

    status: int
    body: Any
    request_id: str | None

    @property
    def refusal(self) -> str | None:
        """The sentence of a refusal, None if the request was carried out."""
        if self.status < 400:
            return None
        errors = self.body.get("errors") if isinstance(self.body, dict) else None
        detail = errors[0].get("detail") if errors and isinstance(errors[0], dict) else None
        return f"{detail or f'The conductor answers with status {self.status}.'}"


class UnknownOutcome(OutcomeUncertain):
    """No answer tells whether the conductor has carried out a request."""


class ConductorClient:
    """Sends requests to the conductor. Each has the token of the user whom it is for, and no other."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    def in_process(cls, conductor: Application) -> "ConductorClient":
        """Return a client of the conductor in this process."""
        # httpx's type of a scope is a wider one.
        transport = httpx.ASGITransport(conductor, raise_app_exceptions=False)  # type: ignore[arg-type]
        return cls(httpx.AsyncClient(transport=transport, base_url="http://conductor"))

    @classmethod
    def of_endpoint(cls, endpoint: str, ca_file: str | None) -> "ConductorClient":
        """Return a client of the conductor at an address. Raises `OperatorError`."""
        client = http_client(ANSWER_SECONDS, _trusted(ca_file))
        client.base_url = httpx.URL(endpoint.rstrip("/"))
        return cls(client)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(
        self,
        token: str,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> ConductorAnswer:
        """Send a request. It is not sent again: whoever asked decides that. ``key``: of one that creates.

        Raises:
            Unavailable: the conductor was not reached, so nothing was done.
            UnknownOutcome: the request may have been carried out.
        """
        headers = {"x-auth-token": token, "accept": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        try:
            answer = await self._client.request(method, path, json=body, params=query, headers=headers)
        except _NOT_SENT as error:
            raise Unavailable(f"The conductor cannot be reached, so nothing was done: {error}") from error
        except httpx.HTTPError as error:
            raise UnknownOutcome(f"The conductor gave no answer: {error or type(error).__name__}.") from error
        if answer.status_code >= _SERVER_ERROR:
            raise UnknownOutcome(f"The conductor answered with status {answer.status_code}.")
        return ConductorAnswer(
            answer.status_code, _decoded(answer.content), answer.headers.get("x-openstack-request-id")
        )


def check_endpoint(options: DashboardOptions) -> None:
    """Check the address of the conductor and its authorities. Raises `OperatorError`."""
    endpoint = options.conductor_endpoint
    if endpoint is None:
        return
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise OperatorError(f"[dashboard] conductor_endpoint: {endpoint!r} is no URL of http or https")
    _trusted(options.conductor_ca_file)


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _trusted(ca_file: str | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=Path(ca_file))
    except OSError as error:
        raise OperatorError(f"[dashboard] conductor_ca_file: {ca_file}: {error}") from error
