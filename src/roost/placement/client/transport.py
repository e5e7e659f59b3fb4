"""Requests to a placement service over HTTP, and the errors that its answers mean."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import msgspec

from roost.auth import IdentityUnavailable
from roost.auth.calling import Caller
from roost.ledger import Moment
from roost.placement.errors import PlacementError, error_for
from roost.placement.moments import moment_of

LATEST = "1.39"
UNTYPED = "1.37"
"""The last version that writes allocations without a consumer type."""


Heard = list[Moment | None]
"""The moments at which responses were made, in the order of the requests; None for one that names none."""


class Transport:
    """Sends requests to the API that the credentials give access to.

    ``heard`` gets the moment of each response but those to DELETE.
    """

    def __init__(self, caller: Caller, heard: Heard | None = None) -> None:
        self._caller = caller
        self._heard = heard

    def noting(self, heard: Heard) -> "Transport":
        """The same, for a caller that notes the moments of its responses."""
        return Transport(self._caller, heard)

    async def close(self) -> None:
        """Close all connections."""
        await self._caller.close()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Sequence[tuple[str, str]] = (),
        version: str = LATEST,
    ) -> Any:
        """Send a request and return the JSON of the answer, None if it has none.

        A token that the service refuses is renewed, and the request sent again, once.

        Raises:
            PlacementError: The service refused the request, or (status 503) no token could be obtained.
            httpx.HTTPError: The service did not answer.
        """
        heard, place = self._heard, 0
        if method == "DELETE":
            heard = None
        if heard is not None:
            place = len(heard)
            heard.append(None)
        headers = {"accept": "application/json", "openstack-api-version": f"placement {version}"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = msgspec.json.encode(body)
        target = f"{path}?{urlencode(params)}" if params else path
        try:
            answer = await self._caller.send(method, target, headers, content)
        except IdentityUnavailable as error:
            raise error_for(httpx.codes.SERVICE_UNAVAILABLE, None, str(error)) from error
        if heard is not None:
            heard[place] = moment_of(answer.headers)
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
