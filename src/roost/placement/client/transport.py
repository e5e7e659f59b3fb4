"""Asking a placement service over HTTP, and what its answers mean."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import msgspec

from roost.placement.errors import PlacementError, error_for

LATEST = "1.39"
UNTYPED = "1.37"
"""The last version that writes allocations without a consumer type."""


class Transport:
    """Requests to the API whose root is ``url``, with a token."""

    def __init__(self, url: str, token: str, client: httpx.AsyncClient) -> None:
        self._url = url.rstrip("/")
        self._headers = {"accept": "application/json", "x-auth-token": token}
        self._client = client

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Sequence[tuple[str, str]] = (),
        version: str = LATEST,
    ) -> Any:
        """Ask, and return the answer's JSON, None if it has none. Raises what the service refused with."""
        headers = {**self._headers, "openstack-api-version": f"placement {version}"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = msgspec.json.encode(body)
        url = f"{self._url}{path}?{urlencode(params)}" if params else f"{self._url}{path}"
        answer = await self._client.request(method, url, content=content, headers=headers)
        if answer.is_error:
            raise _refusal(answer)
        return msgspec.json.decode(answer.content) if answer.content else None


def path_to(*parts: str) -> str:
    """The path with these segments."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _refusal(answer: httpx.Response) -> PlacementError:
    try:
        error = msgspec.json.decode(answer.content)["errors"][0]
        return error_for(answer.status_code, error.get("code"), error["detail"])
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        return error_for(answer.status_code, None, answer.text)
