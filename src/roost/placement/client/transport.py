"""Requests to a placement service over HTTP, and translation of its errors.

A service that does not know the newest microversion gets requests at the newest that it knows.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import msgspec

from roost.ledger import Moment
from roost.placement.errors import BadRequest, PlacementError, error_for
from roost.placement.moments import moment_of
from roost.web.auth import IdentityUnavailable
from roost.web.auth.credentials import Caller

LATEST = "1.39"
TYPED = "1.38"
"""The first version that writes allocations with a consumer type."""
UNTYPED = "1.37"
"""The last version that writes allocations without a consumer type."""
ANY_TRAIT = "1.39"
"""The first version with sets of traits of which any suffices (``in:``)."""
OLDEST = "1.36"
"""The first version that works: Nova, too, needs request groups of one subtree."""
NO_VERSION = "1.0"
"""The version for requests that every service answers."""


class OlderService(BadRequest):
    """The service does not know the version that a request needs."""


ResponseMoments = list[Moment | None]
"""The ledger moments of responses, in the order of the requests; None for a response that names none."""


class Transport:
    """Sends requests to the API that the credentials give access to.

    ``moments`` gets the moment of each response, except those to DELETE.
    """

    def __init__(self, caller: Caller, moments: ResponseMoments | None = None) -> None:
        self._caller = caller
        self._moments = moments
        self._newest = [LATEST]

    def noting(self, moments: ResponseMoments) -> "Transport":
        """Return a transport that records the moments of its responses in ``moments``."""
        other = copy(self)  # It shares the newest version that the service knows.
        other._moments = moments
        return other

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
        needs: str = OLDEST,
        decode: Callable[[bytes], Any] = msgspec.json.decode,
    ) -> Any:
        """Send a request and return what ``decode`` makes of the answer, None if it has no body.

        A token that the service refuses is renewed, and the request sent again, once. It is also sent again
        to a service that does not know ``version``, at the newest that it knows.

        Raises:
            OlderService: The newest version that the service knows is older than ``needs``.
            PlacementError: The newest version that the service knows is older than `OLDEST` (status 406), it
                refused the request, or (status 503) no token could be obtained.
            httpx.HTTPError: The service did not answer.
        """
        moments, place = self._moments, 0
        if method == "DELETE":
            moments = None
        if moments is not None:
            place = len(moments)
            moments.append(None)
        headers = {"accept": "application/json", "openstack-api-version": self._header(version, needs)}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = msgspec.json.encode(body)
        target = f"{path}?{urlencode(params)}" if params else path
        try:
            answer = await self._caller.send(method, target, headers, content)
            if (newest := _newest_of(answer)) is not None:
                self._newest[:] = [newest]
                headers["openstack-api-version"] = self._header(version, needs)
                answer = await self._caller.send(method, target, headers, content)
        except IdentityUnavailable as error:
            raise error_for(httpx.codes.SERVICE_UNAVAILABLE, None, str(error)) from error
        if moments is not None:
            moments[place] = moment_of(answer.headers)
        if answer.is_error:
            raise _refusal(answer)
        return decode(answer.content) if answer.content else None

    def _header(self, version: str, needs: str) -> str:
        [newest] = self._newest
        if is_older(newest, needs):
            says = f"The placement service has microversions up to {newest}, and "
            if needs == OLDEST:
                raise error_for(httpx.codes.NOT_ACCEPTABLE, None, f"{says}Roost needs {needs} at least")
            raise OlderService(f"{says}this request needs {needs}")
        return f"placement {newest if is_older(newest, version) else version}"


def is_older(version: str, than: str) -> bool:
    """Return whether a version is older than another one."""
    return tuple(map(int, version.split("."))) < tuple(map(int, than.split(".")))


def path_to(*parts: str) -> str:
    """Return the path with these segments, quoted."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _refusal(answer: httpx.Response) -> PlacementError:
    try:
        error = msgspec.json.decode(answer.content)["errors"][0]
        return error_for(answer.status_code, error.get("code"), error["detail"])
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        return error_for(answer.status_code, None, answer.text)


def _newest_of(answer: httpx.Response) -> str | None:
    """Return the newest version that a service knows, if its response refuses a newer one; else None."""
    if answer.status_code != httpx.codes.NOT_ACCEPTABLE:
        return None
    try:
        newest = msgspec.json.decode(answer.content)["errors"][0]["max_version"]
        return newest if is_older(newest, LATEST) else None
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, AttributeError, ValueError):
        return None
