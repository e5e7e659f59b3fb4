"""Bodies without an end, and proxies' headers from those who are no proxy."""

import contextlib
import select
import signal
import socket
from collections.abc import Iterator

import httpx
import pytest

from support.serving import HEADERS, Serving
from support.waiting import patience

LIMIT = 2**20
"""Bytes of a body at most."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("exhaustion")
    proxies = [
        "oslo_middleware.enable_proxy_headers_parsing=true",
        "oslo_middleware.trusted_proxies=192.0.2.1",
    ]
    server = Serving(f"sqlite:///{folder / 'roost.db'}", folder / "log", settings=proxies)
    yield server
    server.end(signal.SIGKILL)


def test_a_body_without_an_end_is_refused_after_its_limit(server: Serving) -> None:
    """The client sends chunks until the server closes the connection, and never a last one."""
    port = int(server.url.rpartition(":")[2])
    head = "POST /resource_providers HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    sent = 0
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=patience(30)) as connection:
        connection.sendall(f"{head}\r\n".encode())
        with contextlib.suppress(ConnectionError):
            while sent < 1024 * LIMIT and not select.select([connection], [], [], 0.01)[0]:
                connection.sendall(chunk)
                sent += len(chunk)
            answer = connection.recv(4096)
    # The server closes the connection with data unread, so its answer may be lost.
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"408", b"413"), answer
    assert sent < 1024 * LIMIT
    assert server.ask("GET", "/resource_providers").json() == {"resource_providers": []}


@pytest.mark.parametrize(
    "forged",
    [
        {"forwarded": "for=192.0.2.1;proto=https;host=evil.example"},
        {"forwarded": "for=198.51.100.7;host=evil.example, for=192.0.2.1;host=evil.example"},
        {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"},
        {"x-forwarded-prefix": "/evil.example"},
    ],
)
def test_a_client_that_is_no_listed_proxy_changes_no_link(server: Serving, forged: dict[str, str]) -> None:
    with httpx.Client(base_url=server.url, headers={**HEADERS, **forged}, verify=False) as client:
        made = client.post("/resource_providers", json={"name": "a"})
        shown = client.get("/resource_providers").text
        location = made.headers["location"]
        client.delete(location)
    assert made.status_code == 200
    assert location.startswith(f"{server.url}/resource_providers/")
    assert "evil" not in location + shown
