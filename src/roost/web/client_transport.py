"""Clients of other services: httpx's interface over the connections of aiohttp, whose parser is native code.

A response of a megabyte, such as a thousand allocation candidates, costs httpx's own connections 4 ms of
processor time, and these 0.8 ms.
"""

import asyncio
import ssl
from typing import Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from yarl import URL

CONNECTIONS: Final = 100
"""Most connections of a client to all services together; httpx's own number."""

IDLE_SECONDS: Final = 5.0
"""Seconds for which an idle connection stays open; httpx's own number. Servers close theirs later."""

BUFFER: Final = 2**20
"""Bytes of a response that are read ahead."""

_KINDS: Final[tuple[tuple[type[Exception], type[httpx.TransportError]], ...]] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
)
"""Errors of aiohttp as httpx has them, by the first that fits; any other is a `httpx.ReadError`. A request
with ``ConnectTimeout``, ``ConnectError`` or ``UnsupportedProtocol`` was not sent."""

_OWN_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")
"""Headers that aiohttp would add where a request has none."""


def http_client(timeout: httpx.Timeout | float, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    """Return a client. ``timeout`` is in seconds; ``verify`` as httpx has it.

    Its responses are read whole: none is streamed.
    """
    return httpx.AsyncClient(transport=_Transport(verify), timeout=timeout)


class _Transport(httpx.AsyncBaseTransport):
    """Sends the requests of a client, through the proxies that the environment names."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify
        self._proxies = {name: proxy for name, proxy in getproxies().items() if name != "no"}
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        limits = request.extensions.get("timeout", {})
        timeout = aiohttp.ClientTimeout(
            connect=limits.get("pool"), sock_connect=limits.get("connect"), sock_read=limits.get("read")
        )
        try:
            url = URL(str(request.url), encoded=True)
            async with self._opened().request(
                request.method,
                url,
                headers=request.headers.multi_items(),
                data=await request.aread() or None,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._proxy_for(url),
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _translated(error, request) from error
        return httpx.Response(response.status, headers=response.raw_headers, content=content, request=request)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            # A TLS connection is shut down in the next rounds of the event loop.
            await asyncio.sleep(0)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS, keepalive_timeout=IDLE_SECONDS, ssl=self._verify
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=_OWN_HEADERS,
                auto_decompress=False,
                read_bufsize=BUFFER,
            )
        return self._session

    def _proxy_for(self, url: URL) -> str | None:
        if not self._proxies or proxy_bypass(url.host or ""):
            return None
        return self._proxies.get(url.scheme) or self._proxies.get("all")


def _translated(error: Exception, request: httpx.Request) -> httpx.TransportError:
    kind = next((kind for theirs, kind in _KINDS if isinstance(error, theirs)), httpx.ReadError)
    return kind(str(error), request=request)
