"""The edge: what it notes of a request, and the order in which its parts see it."""

import asyncio

import httpx
import pytest
import structlog
from structlog.testing import capture_logs

from roost.web.app import Kernel, create_app
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application, Message, Receive, Send
from roost.web.edge import Edge
from roost.web.errors import Conflict
from roost.web.observation import UNKNOWN, Observation
from roost.web.operation import OPEN, Operation
from roost.web.policy import Policy
from roost.web.request import Request, Response


class Log:
    """A watch that keeps what it sees."""

    def __init__(self, name: str = "", events: list[str] | None = None) -> None:
        self.name = name
        self.events = [] if events is None else events
        self.seen: list[Observation] = []

    def begin(self, request: Observation) -> None:
        self.events.append(f"begin {self.name}")

    def end(self, request: Observation) -> None:
        self.events.append(f"end {self.name}")
        self.seen.append(request)


async def answering(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ab", "more_body": True})
    await send({"type": "http.response.body", "body": b"cde"})


async def show(service: object, req: Request, resp: Response, name: str) -> dict[str, str]:
    if name == "bad":
        raise Conflict("bad")
    return {"name": name}


def kernel() -> Application:
    operations = (Operation("GET", "/things/{name}", OPEN, show), Operation("DELETE", "/things", OPEN, show))
    app: Application = create_app(operations, Kernel(None, NoAuth(), Policy(PolicyRules((), None, True))))
    return app


async def get(edge: Application, path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(edge)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path, headers={"x-auth-token": "admin"})


def test_status_bytes_and_time_of_a_response() -> None:
    log = Log()
    assert asyncio.run(get(Edge(answering, watches=(log,)), "/")).content == b"abcde"
    (request,) = log.seen
    assert (request.status, request.sent, request.operation) == (200, 5, UNKNOWN)
    assert request.seconds > 0
    assert request.scope["path"] == "/"


@pytest.mark.parametrize(
    ("method", "path", "operation", "status"),
    [
        ("GET", "/things/a", "GET /things/{name}", 200),
        ("GET", "/things/bad", "GET /things/{name}", 409),
        ("POST", "/things/a", UNKNOWN, 405),
        ("BREW", "/things/a", UNKNOWN, 405),
        ("GET", "/nothing/here", UNKNOWN, 404),
    ],
)
def test_the_kernel_names_the_operation(method: str, path: str, operation: str, status: int) -> None:
    log = Log()
    asyncio.run(get(Edge(kernel(), watches=(log,)), path, method))
    assert [(request.operation, request.status) for request in log.seen] == [(operation, status)]


def test_watches_are_nested_and_counts_of_requests_in_flight() -> None:
    events: list[str] = []
    counts: list[int] = []

    async def counting(scope: Message, receive: Receive, send: Send) -> None:
        counts.append(edge.in_flight)
        events.append("application")
        await answering(scope, receive, send)

    edge = Edge(counting, watches=(Log("outer", events), Log("inner", events)))
    asyncio.run(get(edge, "/"))
    assert events == ["begin outer", "begin inner", "application", "end inner", "end outer"]
    assert (counts, edge.in_flight) == ([1], 0)


def test_an_application_that_raises_is_over_without_a_status() -> None:
    async def raising(scope: Message, receive: Receive, send: Send) -> None:
        raise ValueError

    log = Log()
    edge = Edge(raising, watches=(log,))
    with pytest.raises(ValueError):
        asyncio.run(get(edge, "/"))
    assert [request.status for request in log.seen] == [None]
    assert edge.in_flight == 0


def test_open_paths_are_neither_watched_nor_limited() -> None:
    log, limit = Log(), OneAtATime(free=0)
    edge = Edge(kernel(), {"/healthz": answering}, (log,), limit)
    assert asyncio.run(get(edge, "/healthz")).status_code == 200
    assert asyncio.run(get(edge, "/healthz/x")).status_code == 503
    assert [request.scope["path"] for request in log.seen] == ["/healthz/x"]


class OneAtATime:
    """An admission with a number of places."""

    def __init__(self, free: int) -> None:
        self.free = free

    def enter(self, request: Observation) -> Application | None:
        if self.free == 0:
            return refusing
        self.free -= 1
        return None

    def leave(self, request: Observation) -> None:
        self.free += 1

    def sender(self, request: Observation) -> Send:
        return request.send


async def refusing(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 503, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_refused_request_is_watched_and_leaves_no_place_twice() -> None:
    log, limit = Log(), OneAtATime(free=1)
    inner: list[int] = []

    async def asking_again(scope: Message, receive: Receive, send: Send) -> None:
        inner.append((await get(edge, "/again")).status_code)
        await answering(scope, receive, send)

    edge = Edge(asking_again, watches=(log,), admission=limit)
    assert asyncio.run(get(edge, "/")).status_code == 200
    assert inner == [503]
    assert limit.free == 1
    assert [request.status for request in log.seen] == [503, 200]


def test_other_scopes_pass() -> None:
    scopes: list[str] = []

    async def lifespan(scope: Message, receive: Receive, send: Send) -> None:
        scopes.append(scope["type"])

    async def nothing() -> Message:
        return {}

    async def send(message: Message) -> None:
        raise AssertionError

    asyncio.run(Edge(lifespan)({"type": "lifespan"}, nothing, send))
    assert scopes == ["lifespan"]


def test_an_outage_of_a_backend_has_one_line_and_not_one_a_request() -> None:
    structlog.reset_defaults()

    class Away(Exception):
        """The backend does not answer."""

    async def fail(service: object, req: Request, resp: Response) -> None:
        raise Away("no answer")

    operations = (Operation("GET", "/failing", OPEN, fail),)
    app: Application = create_app(
        operations, Kernel(None, NoAuth(), Policy(PolicyRules((), None, True)), unavailable=(Away,))
    )

    async def statuses() -> set[int]:
        return {(await get(Edge(app), "/failing")).status_code for _ in range(50)}

    with capture_logs() as lines:
        assert asyncio.run(statuses()) == {503}
    assert [(line["event"], line["operation"]) for line in lines] == [
        ("a backend does not serve requests", "GET /failing")
    ]
