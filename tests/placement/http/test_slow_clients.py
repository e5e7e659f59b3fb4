"""Slow and silent clients of a running server are cut, each in its way, and others do not notice."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.placement_api import uuid_of
from support.serving import Serving
from support.waiting import Deadline

SETTINGS = ("overload.idle_seconds=1", "overload.body_seconds=1", "overload.send_seconds=1")
SECONDS = 30.0
HEAD = (
    b"%s HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\nOpenStack-API-Version: placement 1.39\r\n"
    b"Content-Type: application/json\r\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("slow")
    serving = Serving(f"sqlite:///{folder / 'placement.db'}", folder / "log", settings=SETTINGS)
    yield serving
    serving.end()


@contextlib.contextmanager
def connected(server: Serving, data: bytes = b"", buffer: int = 0) -> Iterator[socket.socket]:
    with socket.socket() as client:
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", server.port))
        client.sendall(data)
        yield client


def received(client: socket.socket) -> bytes:
    """Everything that arrives until the server closes the connection, which it must."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        pytest.param(b"", b"", id="a client that says nothing"),
        pytest.param(b"PUT /traits/CUS", b"", id="half a head"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"", id="HTTP/2"),
        pytest.param(HEAD % b"GET /" + b"\r\n", b"HTTP/1.1 200", id="a connection that is not used again"),
        pytest.param(
            HEAD % b"POST /resource_providers" + b"Content-Length: 100\r\n\r\n{",
            b"HTTP/1.1 408",
            id="a body that does not arrive",
        ),
    ],
)
def test_a_client_that_sends_nothing_more_is_cut(server: Serving, sent: bytes, answer: bytes) -> None:
    with connected(server, sent) as client:
        found = received(client)
    assert found.startswith(answer) and bool(found) == bool(answer)


def test_a_head_that_drips_is_cut(server: Serving) -> None:
    with connected(server, HEAD % b"GET /") as client:
        with pytest.raises(OSError):
            for number in range(int(SECONDS * 10)):
                client.sendall(b"X-%d: y\r\n" % number)
                time.sleep(0.1)
        assert received(client) == b""


def test_a_client_that_does_not_read_its_answer_is_cut(server: Serving) -> None:
    """Answers of some MB do not fit into the buffers of the kernel, so the server waits for its client."""
    hosts = [{"name": f"h{number}", "uuid": uuid_of(f"h{number}")} for number in range(40)]
    for host in hosts:
        assert server.ask("POST", "/resource_providers", host).status_code == 200
    pipelined = (HEAD % b"GET /resource_providers" + b"\r\n") * 2000
    with connected(server, buffer=4096) as client:
        client.settimeout(SECONDS)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            client.sendall(pipelined)
        until = Deadline(SECONDS)
        while not _cut(client):
            assert not until.passed, "the client that reads nothing is still connected"
            time.sleep(0.1)
    assert server.ask("GET", "/resource_providers").status_code == 200


def _cut(client: socket.socket) -> bool:
    """Whether the server has aborted the connection, without reading from it."""
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0 or _state(client) not in (1,)


def _state(client: socket.socket) -> int:
    """The state of the connection as Linux has it; 1 is ESTABLISHED."""
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def test_silent_clients_leave_others_alone(server: Serving) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(server))
        assert server.ask("GET", "/resource_providers").status_code == 200


def test_idle_connections_give_their_places_to_others(tmp_path: Path) -> None:
    settings = (*SETTINGS, "overload.connections=3")
    server = Serving(f"sqlite:///{tmp_path / 'placement.db'}", tmp_path / "log", settings=settings)
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(connected(server))
            assert server.ask("GET", "/resource_providers").status_code == 200
    finally:
        server.end()


def test_a_wrong_limit_is_named_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="reads"):
        Serving(f"sqlite:///{tmp_path / 'p.db'}", tmp_path / "log", settings=("overload.reads=0",))


def test_the_form_of_a_refusal(tmp_path: Path) -> None:
    """Two bodies together exceed the limit of all. Neither arrives: one is refused, the other given up."""
    settings = ("overload.body_mebibytes=1", "overload.body_seconds=1")
    server = Serving(f"sqlite:///{tmp_path / 'placement.db'}", tmp_path / "log", settings=settings)
    body = HEAD % b"POST /resource_providers" + b"Content-Length: 700000\r\n\r\n{"
    try:
        with connected(server, body) as one, connected(server, body) as other:
            refused, given_up = sorted((received(one), received(other)), reverse=True)
        assert refused.startswith(b"HTTP/1.1 503")
        assert given_up.startswith(b"HTTP/1.1 408")
        head, _, text = refused.partition(b"\r\n\r\n")
        assert b"retry-after: 1" in head.lower()
        (error,) = json.loads(text)["errors"]
        assert error["code"] == "placement.overloaded" and "bodies" in error["detail"]
        assert server.ask("GET", "/resource_providers").status_code == 200
    finally:
        server.end()
