"""Operations of the Placement API, whose presence, body and query depend on the microversion."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from roost.placement.http.body_decoder import decode
from roost.placement.wire.microversions import LATEST, ByVersion, PlacementRequest
from roost.placement.wire.parameter_docs import parameters_of
from roost.placement.wire.query import parse_parameters
from roost.web.errors import HTTPError, NotFound
from roost.web.operation import Operation

NO_BODY = ByVersion[Any]({0: None})

LARGEST_BODY = 64 * 2**20
"""Bytes of the largest body; a larger one is a 413. Hundreds of thousands of allocations fit."""

FirstCheck = Callable[[Any, Mapping[str, str]], Awaitable[None]]
"""``check(service, path_parameters)``: raises the error that has precedence over one of the body."""


@dataclass(frozen=True)
class VersionedOperation(Operation):
    """An operation of the Placement API.

    - ``uuids``: none. Upstream's paths take uuids as they are written.
    - ``since``: the first version. Before it the operation is hidden as ``hidden_as``.
    - ``bodies``: the type of the body at each version, None where the version has no body.
    - ``first_check``: runs when the body is wrong, since upstream reports other errors first.
    """

    largest_body: int = LARGEST_BODY
    uuids: tuple[str, ...] = ()
    since: int = 0
    hidden_as: type[HTTPError] = NotFound
    bodies: ByVersion[Any] = NO_BODY
    first_check: FirstCheck | None = None

    def check_present(self, req: PlacementRequest) -> None:  # type: ignore[override]
        if req.version < self.since:
            raise self.hidden_as

    def body_type(self, req: PlacementRequest) -> Any:  # type: ignore[override]
        return self.bodies.at(req.version)

    def decode(self, raw: bytes, form: Any) -> Any:
        return decode(raw, form)

    async def precede(self, service: Any, params: dict[str, str]) -> None:
        if self.first_check is not None:
            await self.first_check(service, params)

    def at(self, version: int) -> Operation:
        """Return the operation at one version, for the document of that version."""
        query = self.query
        if isinstance(query, QueryAtVersion):
            query = replace(query, version=version)
        return replace(self, body=self.bodies.at(version), query=query)


@dataclass(frozen=True)
class QueryAtVersion:
    """Reads the query of a URL, and describes it at ``version``. ``parse`` returns it for the handler."""

    url: str
    parse: Callable[[PlacementRequest], Any] = parse_parameters
    version: int = LATEST

    def read(self, req: PlacementRequest) -> Any:
        """Read the parameters of a request. Raises `BadRequest`."""
        return self.parse(req)

    def describe(self) -> list[dict[str, Any]]:
        """The parameters at ``version`` as OpenAPI has them."""
        return parameters_of(self.url, self.version)
