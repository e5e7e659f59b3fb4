"""The stream of events over HTTP."""

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final

import falcon.asgi
import msgspec
from msgspec import Meta

from roost.dashboard import addresses
from roost.dashboard.live.viewer import LiveViewer
from roost.dashboard.service import FLEET_RULE, DashboardService
from roost.web.auth import IdentityUnavailable
from roost.web.errors import BadRequest, Forbidden, HTTPError, TooMany, Unavailable
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.query import Parameters, read_parameters
from roost.web.request import Request, Response

MOST_VIEWERS: Final = 500
"""Streams at once. A further one is refused with 429."""

MOST_TOPICS: Final = 20
"""Topics of a stream at most."""

LONGEST_TOPIC: Final = 2_000
"""Characters of a topic at most."""

KEEP_SECONDS: Final = 15.0
"""Seconds without an event after which a comment is sent, and the session is checked."""


class LiveQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of the stream."""

    topic: Annotated[list[Annotated[str, Meta(max_length=LONGEST_TOPIC)]], Meta(max_length=MOST_TOPICS)]


class _LiveQueryReader:
    """Reads a query whose parameter ``topic`` may be repeated."""

    def read(self, req: Any) -> LiveQuery:
        """Read the parameters of a request. Raises `BadRequest`."""
        found: Parameters = read_parameters(req)
        try:
            return msgspec.convert(found, LiveQuery)
        except msgspec.ValidationError as error:
            raise BadRequest(f"Invalid query string parameters: {error}") from None

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them."""
        return [{"name": "topic", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]


class _Encoded(falcon.asgi.SSEvent):
    """Events that are encoded already."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def serialize(self, handler: Any = None) -> bytes:
        return self._content


async def show_events(service: DashboardService, req: Request, resp: Response) -> None:
    """Answer with a stream of events, whose names are their topics.

    The stream ends with the session and its token. A client whose stream ends opens a new one.
    """
    query: LiveQuery = req.query
    _check_place(len(service.live) + 1)
    viewer = await service.live.join(query.topic)
    # Others may have joined meanwhile.
    _check_place(len(service.live))
    resp.cache_control = ("no-store",)
    resp.set_header("x-accel-buffering", "no")
    resp.sse = _stream(service, dict(req.headers), viewer)


def _check_place(viewers: int) -> None:
    if viewers > MOST_VIEWERS:
        raise TooMany(f"This process serves {MOST_VIEWERS} live pages already; try again later.")


async def _stream(
    service: DashboardService, headers: Mapping[str, str], viewer: LiveViewer
) -> AsyncIterator[falcon.asgi.SSEvent]:
    hub = service.live
    checked = hub.monotonic()
    try:
        # Sent at once, so that the client has the headers; retry: milliseconds before it reconnects.
        yield _Encoded(b"retry: 1000\n\n")
        while not hub.closed:
            events = await viewer.take(KEEP_SECONDS)
            if hub.monotonic() - checked >= KEEP_SECONDS:
                checked = hub.monotonic()
                if not await _may_go_on(service, headers):
                    return
            if events:
                yield _Encoded(events)
            elif not hub.closed:
                yield _Encoded(b": still here\n\n")
    finally:
        hub.leave(viewer)


async def _may_go_on(service: DashboardService, headers: Mapping[str, str]) -> bool:
    """Return whether the session and its token are still valid, and still those of an operator."""
    try:
        identity = await service.sessions.identify(headers)
        if identity is None:
            return False
        service.policy.check(identity, FLEET_RULE, identity.project_id)
    except (IdentityUnavailable, Unavailable):
        # Whoever was let in stays, until the identity service says otherwise.
        return True
    except (Forbidden, HTTPError):
        return False
    return True


LIVE_OPERATIONS: Final = (
    Operation("GET", addresses.LIVE, Rule(FLEET_RULE), show_events, query=_LiveQueryReader(), provides=()),
)
