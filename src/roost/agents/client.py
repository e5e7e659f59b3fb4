"""The endpoint of a cell over HTTPS, as an agent asks it."""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec

from roost.agents.errors import AccessRefused, EndpointUnavailable, MessageRefused
from roost.agents.questions import Poll
from roost.agents.wire import CODES, ROUTES
from roost.machine import Question, UnknownService

T = TypeVar("T")

ANSWER_SECONDS = 30.0
"""Seconds that the endpoint may take for an answer, beside what a poll waits."""

CONNECT_SECONDS = 30.0
"""Seconds to connect: an endpoint that a thousand agents connect to at once needs some."""

CONNECTIONS = httpx.Limits(max_connections=4, max_keepalive_connections=2, keepalive_expiry=25.0)
"""Connections of a host. Two stay open, one of which has the poll that waits: to open one costs both sides
more than many messages. The endpoint closes one that is not used for 30 seconds."""

ATTEMPTS = 2
"""Times that a question is sent in all if its connection breaks: one that was kept open may be closed by the
endpoint just then. Every question may be repeated."""

_ROUTES: dict[type[Question[Any]], tuple[str, msgspec.json.Decoder[Any] | None]] = {
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
        transport: What sends requests, for tests; by default connections of its own, which are kept open.
    """

    def __init__(
        self,
        url: str,
        tokens: Callable[[], Sequence[str]],
        verify: ssl.SSLContext | bool = True,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._tokens = tokens
        self._refused: set[str] = set()
        self._client = httpx.AsyncClient(
            base_url=url,
            verify=verify,
            transport=transport,
            trust_env=False,
            timeout=None,
            limits=CONNECTIONS,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(self, question: Question[T], /) -> T:
        """The answer to one of the questions of `roost.agents.questions`. Raises `AgentProtocolError`."""
        if type(question) not in _ROUTES:
            raise UnknownService(f"a cell's endpoint does not answer {type(question).__name__}")
        path, decoder = _ROUTES[type(question)]
        try:
            content = _encode(question)
        except (UnicodeEncodeError, TypeError, OverflowError) as error:
            raise MessageRefused(f"the message cannot be encoded: {error}") from error
        waits = question.wait_seconds if isinstance(question, Poll) else 0.0
        response = await self._authenticated(path, content, ANSWER_SECONDS + waits)
        if response.status_code >= 300:
            raise _error_of(response)
        if decoder is None:
            return None  # type: ignore[return-value]
        try:
            return decoder.decode(response.content)  # type: ignore[no-any-return]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise MessageRefused(f"this is no endpoint of a cell: {error}") from error

    async def _authenticated(self, path: str, content: bytes, seconds: float) -> httpx.Response:
        """Send a message with the first token that the endpoint takes."""
        tokens = list(dict.fromkeys(self._tokens()))
        # A token that was refused may be valid later: a new one may not have reached the database yet.
        usable = [each for each in tokens if each not in self._refused] or tokens
        if len(usable) == len(tokens):
            self._refused.clear()
        for token in usable:
            response = await self._sent(path, content, seconds, token)
            if response.status_code != httpx.codes.UNAUTHORIZED:
                return response
            self._refused.add(token)
        raise AccessRefused("the endpoint refuses the token of the host" if tokens else "there is no token")

    async def _sent(self, path: str, content: bytes, seconds: float, token: str) -> httpx.Response:
        headers = {"x-auth-token": token, "content-type": "application/json", "accept": "application/json"}
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._client.post(path, content=content, headers=headers, timeout=timeout)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
                if not left:
                    raise EndpointUnavailable(f"the connection broke: {_named(error)}") from error
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                raise EndpointUnavailable(f"the endpoint cannot be reached: {_named(error)}") from error
        raise AssertionError


def tls_context(
    authority: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """The context of connections to an endpoint.

    ``authority``: certificates of authorities, instead of the system's. ``certificate`` and ``key``: those of
    the agent, if the endpoint asks for one. All in PEM. Raises OSError, also for a wrong file.
    """
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


def _error_of(response: httpx.Response) -> Exception:
    """The error that a response stands for."""
    try:
        [error] = _decode_errors(response.content).errors
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        error = _Error()
    text = " ".join(error.detail.split()) or f"the endpoint answers {response.status_code}"
    if error.code in CODES:
        return CODES[error.code](text)
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return AccessRefused(text)
    status = response.status_code
    if status >= 500 or status in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.REQUEST_TIMEOUT):
        return EndpointUnavailable(text)
    return MessageRefused(f"{text} ({status} {response.url})")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
