"""The endpoint of a cell over HTTPS, as an agent calls it."""

import ssl
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from roost.agent.protocol.connections import AgentTransport, Connections, Response
from roost.agent.protocol.errors import AccessRefused, EndpointUnavailable, MessageRefused
from roost.agent.protocol.questions import Call, Poll
from roost.agent.protocol.wire import CODES, ROUTES

T = TypeVar("T")

ANSWER_SECONDS = 30.0
"""Timeout in seconds of an answer, beside the wait of a poll."""

HEADERS = {"content-type": "application/json", "accept": "application/json"}

_ROUTES: dict[type[Call[Any]], tuple[str, msgspec.json.Decoder[Any] | None]] = {
    route.question: (route.path, None if route.answer is None else msgspec.json.Decoder(route.answer))
    for route in ROUTES
}
_encode = msgspec.json.Encoder().encode


class _Error(msgspec.Struct):
    code: str = ""
    detail: str = ""


class _Errors(msgspec.Struct):
    errors: list[_Error]


_decode_errors = msgspec.json.Decoder(_Errors).decode


class HttpEndpoint:
    """Asks the endpoint of a cell for one host. Close it at the end.

    Args:
        url: The root URL of the endpoint.
        tokens: Returns the tokens of the host, the one to try first in front.
        verify: The TLS context (`tls_context`), which all hosts of a process share.
        transport: Sends the messages; by default connections of its own, which are kept open.
    """

    def __init__(
        self,
        url: str,
        tokens: Callable[[], Sequence[str]],
        verify: ssl.SSLContext | bool = True,
        *,
        transport: AgentTransport | None = None,
    ) -> None:
        self._tokens = tokens
        self._transport = transport or Connections(url, verify)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def ask(self, question: Call[T], /) -> T:
        """Return the answer to a question of `roost.agent.protocol.questions`.

        Raises `AgentProtocolError`.
        """
        path, decoder = _ROUTES[type(question)]
        try:
            content = _encode(question)
        except (UnicodeEncodeError, TypeError, OverflowError) as error:
            raise MessageRefused(f"the message cannot be encoded: {error}") from error
        waits = question.wait_seconds if isinstance(question, Poll) else 0.0
        response = await self._authenticated(path, content, ANSWER_SECONDS + waits)
        if response.status >= 300:
            raise _error_of(response, path)
        if decoder is None:
            return None  # type: ignore[return-value]
        try:
            return decoder.decode(response.content)  # type: ignore[no-any-return]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise MessageRefused(f"this is no endpoint of a cell: {error}") from error

    async def _authenticated(self, path: str, content: bytes, seconds: float) -> Response:
        """Send a message with the first token that the endpoint takes.

        The first one is always tried first, even if it was refused before: a new token may reach the endpoint
        a moment later, and only its use ends the old one. While a message is under way, another one may
        bring a new token that ends the token of this message.
        """
        tried: set[str] = set()
        while (token := next((each for each in self._tokens() if each not in tried), None)) is not None:
            headers = {"x-auth-token": token, **HEADERS}
            response = await self._transport.send(path, content, headers, seconds)
            if response.status != HTTPStatus.UNAUTHORIZED:
                return response
            tried.add(token)
        raise AccessRefused("the endpoint refuses the token of the host" if tried else "there is no token")


def tls_context(
    authority: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Return the TLS context of connections to an endpoint.

    ``authority``: certificates of authorities, instead of the system's. ``certificate`` and ``key``: the
    agent's own, if the endpoint asks for one. All in PEM. Raises OSError, also for a wrong file.
    """
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


def _error_of(response: Response, path: str) -> Exception:
    """Return the error for a response of a path."""
    try:
        [error] = _decode_errors(response.content).errors
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        error = _Error()
    text = " ".join(error.detail.split()) or f"the endpoint answers {response.status}"
    if error.code in CODES:
        return CODES[error.code](text)
    if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AccessRefused(text)
    status = response.status
    if status >= 500 or status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT):
        return EndpointUnavailable(text)
    return MessageRefused(f"{text} ({status} {path})")
