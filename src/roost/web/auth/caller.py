"""Requests to another service with a token, which is renewed when the service refuses it."""

import httpx

from roost.process import tracing
from roost.process.logs.request_ids import HEADER, current_requests
from roost.web.auth.credentials import Access, Credentials


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
