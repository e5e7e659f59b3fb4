"""Requests that a proxy and Roost could understand differently: none has a second one hidden in it.

Each attack ends with a complete request that the sender of the first one could not have sent through a proxy.
It must never be answered.
"""

import contextlib
import signal
import socket
from collections.abc import Iterator

import pytest

from support.serving import Serving
from support.waiting import patience

HEADERS = (
    b"host: x\r\nx-auth-token: admin\r\nopenstack-api-version: placement 1.39\r\n"
    b"content-type: application/json\r\n"
)
BODY = b'{"name":"a"}'
CHUNKED = b"c\r\n" + BODY + b"\r\n0\r\n\r\n"
HIDDEN = b"GET /traits?name=startswith:HW_NUMA HTTP/1.1\r\n" + HEADERS + b"\r\n"
ANSWER_TO_HIDDEN = b"HW_NUMA"

FRAMING = {
    "length and chunks": (
        b"content-length: %d\r\ntransfer-encoding: chunked" % (len(CHUNKED) + len(HIDDEN)),
        CHUNKED,
    ),
    "chunks and length": (b"transfer-encoding: chunked\r\ncontent-length: 3", CHUNKED),
    "two lengths": (b"content-length: 12\r\ncontent-length: 3", BODY),
    "a list of lengths": (b"content-length: 12, 3", BODY),
    "a length with a sign": (b"content-length: +12", BODY),
    "a negative length": (b"content-length: -1", b""),
    "a length beyond all integers": (b"content-length: " + b"9" * 40, b""),
    "an unknown encoding": (b"transfer-encoding: xchunked", CHUNKED),
    "an encoding after chunked": (b"transfer-encoding: chunked, identity\r\ncontent-length: 0", b""),
    "identity": (b"transfer-encoding: identity\r\ncontent-length: 0", b""),
    "a blank before the colon": (b"transfer-encoding : chunked\r\ncontent-length: 5", b"0\r\n\r\n"),
    "a tab after the colon": (b"transfer-encoding:\tchunked\r\ncontent-length: 5", b"0\r\n\r\n"),
    "a folded header": (b"content-length: 0\r\nx-a: b\r\n c", b""),
    "a NUL in a header": (b"content-length: 0\r\nx-a: b\x00c", b""),
    "a huge chunk": (b"transfer-encoding: chunked", b"F" * 17 + b"\r\n"),
    "a broken chunk": (b"transfer-encoding: chunked", b"1;\n\r\n"),
    "a negative chunk": (b"transfer-encoding: chunked", b"-1\r\n"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("smuggling")
    server = Serving(f"sqlite:///{folder / 'roost.db'}", folder / "log")
    yield server
    server.end(signal.SIGKILL)


def send(server: Serving, raw: bytes) -> tuple[bytes, bool]:
    """Send bytes; return everything that comes back, and whether the server closed the connection."""
    port = int(server.url.rpartition(":")[2])
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=patience(30)) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(raw)
        connection.settimeout(2)
        while True:
            try:
                part = connection.recv(65536)
            except TimeoutError:
                return answer, False
            except ConnectionError:
                return answer, True
            if not part:
                return answer, True
            answer += part


def test_the_hidden_request_is_answered_where_it_is_not_hidden(server: Serving) -> None:
    """Otherwise the tests below would show nothing."""
    answer, _ = send(server, HIDDEN)
    assert answer.startswith(b"HTTP/1.1 200") and ANSWER_TO_HIDDEN in answer
    answer, _ = send(server, b"GET / HTTP/1.1\r\n" + HEADERS + b"\r\n" + HIDDEN)
    assert answer.count(b"HTTP/1.1 200") == 2 and ANSWER_TO_HIDDEN in answer


@pytest.mark.parametrize("attack", FRAMING)
def test_an_ambiguous_length_hides_no_request(server: Serving, attack: str) -> None:
    headers, body = FRAMING[attack]
    answer, closed = send(
        server, b"POST /resource_providers HTTP/1.1\r\n" + HEADERS + headers + b"\r\n\r\n" + body + HIDDEN
    )
    assert ANSWER_TO_HIDDEN not in answer
    assert answer.count(b"HTTP/1.1 ") == 1 and closed
    assert server.ask("GET", "/").status_code == 200


@pytest.mark.parametrize(
    "header", [b"x-a: " + b"b" * 10_000_000, b"\r\n".join(b"a%d: b" % number for number in range(5000))]
)
def test_headers_have_a_limit(server: Serving, header: bytes) -> None:
    answer, closed = send(server, b"GET / HTTP/1.1\r\n" + HEADERS + header + b"\r\n\r\n")
    assert closed and (answer == b"" or answer.startswith(b"HTTP/1.1 4"))
    assert server.ask("GET", "/").status_code == 200
