"""Requests to the API of a neighbour."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec

from roost.auth.authenticator import IdentityUnavailable
from roost.auth.calling import Caller
from roost.compute.errors import NeighbourAway, NeighbourRefused

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class NeighbourApi:
    """The API of one service. ``name``: as errors call it."""

    def __init__(self, name: str, caller: Caller) -> None:
        self._name = name
        self._caller = caller

    async def close(self) -> None:
        """Close all connections."""
        await self._caller.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        revision: int | None = None,
    ) -> Any:
        """The decoded body of the response, None if it has none.

        ``revision``: the number of changes that the resource must have had, for services that count them.

        Raises `NeighbourAway`, `NeighbourRefused`.
        """
        headers = {"accept": "application/json", "content-type": "application/json"}
        if revision is not None:
            headers["if-match"] = f"revision_number={revision}"
        target = f"{path}?{urlencode(query)}" if query else path
        content = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._caller.send(method, target, headers, content)
        except (httpx.HTTPError, httpx.InvalidURL, IdentityUnavailable) as error:
            raise NeighbourAway(f"{self._name} does not answer: {error or type(error).__name__}") from error
        status = response.status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            raise NeighbourAway(f"{self._name} answers {status} to {method} {path}")
        try:
            answer = msgspec.json.decode(response.content) if response.content.strip() else None
        except _NOT_JSON as error:
            if status < HTTPStatus.MULTIPLE_CHOICES:
                raise NeighbourAway(f"{self._name} answers {method} {path} by no JSON") from error
            answer = None
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            kind, text = _error_in(answer)
            raise NeighbourRefused(f"{self._name}: {text or f'{status} to {method} {path}'}", status, kind)
        return answer


def _error_in(answer: object) -> tuple[str, str]:
    """The type and the text of an error, in the forms of Neutron, of Cyborg, and of other services."""
    if not isinstance(answer, dict):
        return "", ""
    neutron = answer.get("NeutronError")
    if isinstance(neutron, dict):
        return str(neutron.get("type", "")), str(neutron.get("message", ""))
    errors = answer.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return str(errors[0].get("code", "")), str(errors[0].get("detail", ""))
    return "", str(answer.get("faultstring") or answer.get("error_message") or "")
