"""Requests of this process to another service, and the credentials for them: its URL, and a token for it."""

from typing import NamedTuple, Protocol

import httpx

from roost.process import tracing
from roost.process.logs.request_ids import HEADER, current_requests


class Access(NamedTuple):
    """The URL of a service, and a token for it; None if the service needs no token."""

    url: str
    token: str | None


class Credentials(Protocol):
    """Gives access to one service, with tokens that it renews."""

    async def access(self) -> Access:
        """Return the access with a token that is valid now. Raises `IdentityUnavailable`."""

    async def renew(self, refused: Access) -> Access:
        """Return the access with a new token in place of the refused one; the same if there is no other.

        Raises `IdentityUnavailable`.
        """


class FixedCredentials:
    """A URL and a token that never change."""

    def __init__(self, url: str, token: str | None) -> None:
        self._access = Access(url, token)

    async def access(self) -> Access:
        return self._access

    async def renew(self, refused: Access) -> Access:
        return self._access


class Caller:
    """Sends requests to the service that the credentials give access to."""

    def __init__(self, credentials: Credentials, client: httpx.AsyncClient) -> None:
        self._credentials = credentials
        self._client = client

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(
        self, method: str, target: str, headers: dict[str, str], content: bytes | None = None
    ) -> httpx.Response:
        """Send a request to a path with its query and return the response, whatever its status.

        It carries the ids of the current request. If the service refuses the token, the token is renewed and
        the request sent again, once.

        Raises:
            IdentityUnavailable: No token could be obtained.
            httpx.HTTPError: The service did not answer.
        """
        path = target.partition("?")[0]
        if requests := current_requests():
            headers = {**headers, HEADER: requests[0].onward}

        async def once(access: Access) -> httpx.Response:
            token = {} if access.token is None else {"x-auth-token": access.token}
            url = f"{access.url.rstrip('/')}{target}"
            with tracing.span(f"{method} {path.split('/')[1]}", {"url.path": path}, kind="client"):
                sent = {**headers, **token, **tracing.headers()}
                return await self._client.request(method, url, content=content, headers=sent)

        access = await self._credentials.access()
        response = await once(access)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            renewed = await self._credentials.renew(access)
            if renewed != access:
                response = await once(renewed)
        return response
