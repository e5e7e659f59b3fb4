"""Admission: what is refused, why, in which form, and that nothing is lost count of."""

import asyncio
import random

import httpx
import msgspec
import pytest

from roost.web.admission import Admission, Cause, Load, RequestArrival, arrival_of, decide
from roost.web.app import Kernel, create_app
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application, Message, Receive, Send
from roost.web.edge import Edge
from roost.web.limits import Limits, head_bytes
from roost.web.observation import LONG, Observation
from roost.web.operation import LARGEST_BODY, OPEN, Operation
from roost.web.patient_sender import PART, PatientSender
from roost.web.policy import Policy
from roost.web.request import Request, Response

LIMITS = Limits(reads=3, writes=2, body_bytes=100, answer_bytes=1000)
READ, WRITE = RequestArrival(writes=False), RequestArrival(writes=True)


@pytest.mark.parametrize(
    ("load", "arrival", "cause"),
    [
        (Load(), READ, None),
        (Load(reads=2), READ, None),
        (Load(reads=3), READ, Cause.READS),
        (Load(reads=3), WRITE, None),
        (Load(writes=2), WRITE, Cause.WRITES),
        (Load(writes=2), READ, None),
        (Load(answer_bytes=1000), READ, Cause.ANSWERS),
        (Load(answer_bytes=1000), WRITE, None),
        (Load(writes=1, body_bytes=60), RequestArrival(True, 40), None),
        (Load(writes=1, body_bytes=60), RequestArrival(True, 41), Cause.BODIES),
        (Load(), RequestArrival(True, 101), None),
        (Load(writes=1, body_bytes=100), WRITE, None),
    ],
)
def test_a_request_is_refused_by_the_limit_that_it_would_exceed(
    load: Load, arrival: RequestArrival, cause: Cause | None
) -> None:
    assert decide(load, arrival, LIMITS) is cause


def test_a_head_of_more_than_64_kib_is_refused_on_every_path_and_one_of_64_kib_is_not() -> None:
    served: list[str] = []

    async def show(service: object, req: Request, resp: Response) -> dict[str, str]:
        served.append(req.path)
        return {}

    async def health(scope: Message, receive: Receive, send: Send) -> None:
        served.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    operations = (Operation("GET", "/things", OPEN, show),)
    app: Application = create_app(operations, Kernel(None, NoAuth(), Policy(PolicyRules((), None, True))))
    edge = Edge(app, {"/healthz": health}, admission=Admission(app, LIMITS))

    async def statuses() -> list[int]:
        transport = httpx.ASGITransport(edge)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [
                (await client.get(path, headers={"x-long": "x" * size})).status_code
                for path in ("/things", "/healthz")
                for size in (60_000, 2**16, 90_000)
            ]

    assert asyncio.run(statuses()) == [200, 431, 431, 200, 431, 431]
    assert served == ["/things", "/healthz"]


def test_all_parts_of_a_head_count() -> None:
    head = b"GET /a%20b?c=d HTTP/1.1\r\nhost: test\r\nx-a: bc\r\n"
    scope = {
        "method": "GET",
        "path": "/a b",
        "raw_path": b"/a%20b",
        "query_string": b"c=d",
        "headers": [(b"host", b"test"), (b"x-a", b"bc")],
    }
    assert head_bytes(scope) == len(head)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_arrives_limits_hold_and_reads_never_refuse_a_write(seed: int) -> None:
    rng = random.Random(seed)
    limits = Limits(
        reads=rng.randint(1, 8), writes=rng.randint(1, 8), body_bytes=rng.randint(1, 500), answer_bytes=10_000
    )
    reads_only = Limits(reads=limits.reads, writes=limits.writes, body_bytes=2**62, answer_bytes=2**62)

    async def nothing(*_: object) -> None:
        raise AssertionError("the application is not called")

    admission = Admission(nothing, limits)
    inside: list[Observation] = []
    for _ in range(500):
        if inside and rng.random() < 0.45:
            admission.leave(inside.pop(rng.randrange(len(inside))))
            continue
        method = rng.choice(("GET", "HEAD", "PUT", "POST", "DELETE"))
        size = rng.randrange(200) if method in ("PUT", "POST") else 0
        request = observed(method, size)
        before = admission.load
        if admission.enter(request) is None:
            inside.append(request)
        elif method not in ("GET", "HEAD"):
            # The same write is refused if no read is in flight.
            alone = before._replace(reads=0, answer_bytes=0)
            assert decide(alone, RequestArrival(True, size), limits) is not None
        else:
            assert decide(before, READ, reads_only) is Cause.READS
        load = admission.load
        assert load.reads <= limits.reads and load.writes <= limits.writes
        assert load.body_bytes <= max(limits.body_bytes, 200)
        assert load.reads + load.writes == len(inside)
    for request in inside:
        admission.leave(request)
    assert admission.load == Load()


def observed(method: str, size: int | None = None) -> Observation:
    headers = [(b"host", b"x"), *([] if size is None else [(b"content-length", b"%d" % size)])]
    return Observation({"method": method, "path": "/", "headers": headers})


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ([], 0),
        ([(b"content-length", b"12")], 12),
        ([(b"content-length", b"99999999999")], LARGEST_BODY),
        ([(b"content-length", b"many")], LARGEST_BODY),
        ([(b"transfer-encoding", b"chunked")], LARGEST_BODY),
    ],
)
def test_a_body_counts_as_far_as_it_is_read(headers: list[tuple[bytes, bytes]], size: int) -> None:
    assert arrival_of({"method": "PUT", "headers": headers}) == RequestArrival(True, size)
    assert arrival_of({"method": "GET", "headers": headers}) == RequestArrival(False)


class Gate:
    """A service whose requests wait until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.bodies: list[object] = []

    def app(self, body_seconds: float = 20.0) -> Application:
        async def wait(service: Gate, req: Request, resp: Response) -> dict[str, bool]:
            service.bodies.append(req.body)
            await service.opened.wait()
            return {"done": True}

        operations = (Operation("GET", "/", OPEN, wait), Operation("PUT", "/", OPEN, wait, body=dict))
        kernel = Kernel(self, NoAuth(), Policy(PolicyRules((), None, True)), body_seconds=body_seconds)
        app: Application = create_app(operations, kernel)
        return app


def test_a_refused_request_gets_503_at_once_and_the_others_their_answers() -> None:
    async def run() -> None:
        gate = Gate()
        app = gate.app()
        admission = Admission(app, LIMITS, uncounted=("/long",))
        edge = Edge(app, admission=admission)
        transport, token = httpx.ASGITransport(edge), {"x-auth-token": "admin"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=token) as client:
            held = [asyncio.create_task(client.get("/")) for _ in range(3)]
            held += [asyncio.create_task(client.put("/", json={})) for _ in range(2)]
            while len(gate.bodies) < 5:
                await asyncio.sleep(0)
            for refused in (await client.get("/"), await client.put("/", json={})):
                assert refused.status_code == 503
                assert refused.headers["retry-after"] == "1"
                (error,) = refused.json()["errors"]
                assert error["code"] == "placement.overloaded"
                assert error["request_id"] == refused.headers["x-openstack-request-id"]
            assert (await client.get("/long")).status_code == 404
            gate.opened.set()
            assert {(await each).status_code for each in held} == {200}
            assert (await client.get("/")).status_code == 200
        assert admission.load == Load()

    asyncio.run(run())


def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async def run() -> list[Message]:
        sent: list[Message] = []
        first = iter([{"type": "http.request", "body": b"{", "more_body": True}])

        async def receive() -> Message:
            for message in first:
                return message
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "PUT",
            "path": "/",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"100")],
        }
        await Gate().app(body_seconds=0.01)(scope, receive, send)
        return sent

    start, body = asyncio.run(run())
    assert start["status"] == 408
    assert "0.01 seconds" in msgspec.json.decode(body["body"])["errors"][0]["detail"]


class Client:
    """The sending side of a server whose client takes some parts and then no more."""

    def __init__(self, takes: int) -> None:
        self.taken: list[Message] = []
        self._takes = takes

    async def send(self, message: Message) -> None:
        if len(self.taken) == self._takes:
            await asyncio.Event().wait()
        self.taken.append(message)


def to(client: Client) -> Observation:
    return Observation({}, client.send)


def not_called(value: object) -> None:
    raise AssertionError(f"called with {value}")


def test_a_long_body_is_sent_in_parts_and_counted_until_it_is_taken() -> None:
    counted: list[int] = []
    client = Client(takes=10)
    body = random.Random(1).randbytes(2 * PART + 5)
    sender = PatientSender(10.0, counted.append, not_called)
    asyncio.run(sender.send(to(client), {"type": "http.response.body", "body": body}))
    assert b"".join(part["body"] for part in client.taken) == body
    assert [part["more_body"] for part in client.taken] == [True, True, False]
    assert counted == [len(body), -PART, -PART, -5, 0]


def test_a_short_body_is_handed_on_as_it_is() -> None:
    client = Client(takes=1)
    message = {"type": "http.response.body", "body": b"x" * LONG}
    request = to(client)
    request.send_long = PatientSender(10.0, not_called, not_called).send
    asyncio.run(send(request, message))
    assert client.taken == [message]


async def send(request: Observation, message: Message) -> None:
    await request.send(message)


def test_a_client_that_stops_taking_a_long_body_is_given_up_and_no_longer_counted() -> None:
    counted: list[int] = []
    cut: list[Message] = []
    request = to(Client(takes=2))
    request.send_long = PatientSender(0.01, counted.append, cut.append).send
    with pytest.raises(TimeoutError):
        asyncio.run(send(request, {"type": "http.response.body", "body": bytes(LONG + PART)}))
    assert cut == [request.scope]
    assert sum(counted) == 0 and counted[0] == LONG + PART


def test_a_client_that_takes_each_part_in_time_must_take_all_in_time() -> None:
    seconds = 1000.0
    client = Client(takes=100)
    sender = PatientSender(seconds, lambda size: None, lambda scope: None)
    body = bytes(4 * PART)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        real, passed = loop.time, 0.0
        loop.time = lambda: real() + passed  # type: ignore[method-assign]

        class Slow(Client):
            async def send(self, message: Message) -> None:
                nonlocal passed
                passed += 0.9 * seconds
                for _ in range(3):  # what is due by now is done
                    await asyncio.sleep(0)
                await client.send(message)

        await sender.send(to(Slow(takes=100)), {"type": "http.response.body", "body": body})

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert len(client.taken) == 1
