"""The HTTP connections of one host to the endpoint of its cell.

They use aiohttp, whose parser is native code: a message costs the agent 0.2 ms of processor time. With httpx,
which the rest of the project uses, it costs 2 ms, and a build takes three messages.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import aiohttp

from roost.agent.protocol.errors import EndpointUnavailable
from roost.model.text import fault_of

CONNECT_SECONDS = 30.0
"""Seconds to connect: an endpoint that a thousand agents connect to at once needs some."""

CONNECTIONS = 4
"""Connections of a host, at most. One has the poll that waits, the others serve messages meanwhile."""

IDLE_SECONDS = 25.0
"""Seconds for which an idle connection stays open: to open one costs both sides more than many messages.
The endpoint closes a connection that is not used for 30 seconds."""

ATTEMPTS = 2
"""Times that a message is sent in all if its connection breaks: the endpoint may close a kept connection just
then. Every question may be repeated."""


class Response(NamedTuple):
    """The status and the body of a response."""

    status: int
    content: bytes


class AgentTransport(Protocol):
    """Sends messages to an endpoint; `Connections` is one."""

    async def send(self, path: str, content: bytes, headers: Mapping[str, str], seconds: float) -> Response:
        """Return the response to a POST request. Raises `EndpointUnavailable`."""

    async def close(self) -> None:
        """Close all connections."""


class Connections:
    """Connections to the root URL of an endpoint, made when they are needed and kept open.

    ``verify``: the TLS context; True: the default one, False: no verification.
    """

    def __init__(self, url: str, verify: ssl.SSLContext | bool = True) -> None:
        self._url = url.rstrip("/")
        self._verify = verify
        self._session: aiohttp.ClientSession | None = None

    async def send(self, path: str, content: bytes, headers: Mapping[str, str], seconds: float) -> Response:
        """Send a message, once more if its connection breaks."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._sent(path, content, headers, seconds)
            except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
                raise EndpointUnavailable(f"the endpoint cannot be reached: {_named(error)}") from error
            except TimeoutError as error:
                raise EndpointUnavailable(f"the endpoint does not answer: {_named(error)}") from error
            except (aiohttp.ClientError, OSError) as error:
                if not left:
                    raise EndpointUnavailable(f"the connection broke: {_named(error)}") from error
        raise AssertionError

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            # A TLS connection is shut down in the next rounds of the event loop.
            await asyncio.sleep(0)

    async def _sent(self, path: str, content: bytes, headers: Mapping[str, str], seconds: float) -> Response:
        limits = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        async with self._opened().post(
            self._url + path, data=content, headers=headers, timeout=limits, allow_redirects=False
        ) as response:
            return Response(response.status, await response.read())

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS, keepalive_timeout=IDLE_SECONDS, ssl=self._verify
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {fault_of(error)}" if str(error) else type(error).__name__
