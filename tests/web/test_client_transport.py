"""The client's transport: what a service is sent, what its answer is, and which error a caller gets."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from roost.web.client_transport import http_client

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[int]:
    """The port of a service, which has ended all connections at the end of the block."""
    tasks = set[asyncio.Task[None] | None]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            await asyncio.gather(*filter(None, tasks))


def asked(
    serve: Serve, *requests: tuple[str, str, dict[str, Any]], timeout: float = 30.0
) -> list[httpx.Response]:
    """The answers of a service of raw bytes to requests, one after another, of one client."""

    async def run() -> list[httpx.Response]:
        async with served(serve) as port, http_client(timeout) as client:
            return [
                await client.request(method, f"http://127.0.0.1:{port}{target}", **rest)
                for method, target, rest in requests
            ]

    return asyncio.run(run())


async def head_of(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def answering(*parts: bytes) -> tuple[list[bytes], list[int], Serve]:
    """A service that answers each request with these bytes; what it was sent, and on how many connections."""
    seen: list[bytes] = []
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while True:
            head = await head_of(reader)
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            seen.append(head + await reader.readexactly(length))
            for part in parts:
                writer.write(part)
                await writer.drain()

    return seen, connections, serve


def test_requests_are_sent_as_httpx_makes_them_over_one_connection() -> None:
    seen, connections, serve = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-one: 1\r\n\r\n{}")
    query = "/a%2Fb?resources=VCPU%3A2%2CMEMORY_MB%3A4&name=%C3%A9+x"
    first, second = asked(
        serve,
        ("GET", query, {"headers": {"x-auth-token": "t"}}),
        ("PUT", "/p", {"content": b'{"a":1}', "headers": {"content-type": "application/json"}}),
    )
    assert (first.status_code, first.content, first.headers["x-one"]) == (200, b"{}", "1")
    assert second.json() == {}
    assert seen[0].startswith(f"GET {query} HTTP/1.1\r\n".encode())
    heads = [
        dict(line.split(": ", 1) for line in one.decode().split("\r\n")[1:] if ": " in line) for one in seen
    ]
    assert heads[0]["x-auth-token"] == "t"
    assert "content-type" not in {name.lower() for name in heads[0]}
    assert seen[1].endswith(b'\r\n\r\n{"a":1}')
    assert len(connections) == 1


def test_compressed_and_chunked_responses_are_read() -> None:
    body = b"x" * 3_000_000
    packed = gzip.compress(body)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(packed), packed)
    [response] = asked(answering(head, chunk)[2], ("GET", "/", {}))
    assert response.content == body


def test_redirects_are_left_to_the_caller() -> None:
    seen, _, serve = answering(b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n")
    [response] = asked(serve, ("GET", "/", {}))
    assert (response.status_code, response.headers["location"], len(seen)) == (302, "/other", 1)


def closing(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)

    return serve


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", httpx.RemoteProtocolError),
        (b"this is no HTTP\r\n\r\n", httpx.RemoteProtocolError),
    ],
    ids=["no answer", "half an answer", "not HTTP"],
)
def test_broken_answers_are_transport_errors_of_a_request_that_was_sent(
    answer: bytes, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        asked(closing(answer), ("POST", "/", {"content": b"{}"}))


def test_service_that_says_nothing_is_a_read_timeout() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        await reader.read()

    with pytest.raises(httpx.ReadTimeout):
        asked(serve, ("GET", "/", {}), timeout=0.05)


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://127.0.0.1:9/", httpx.ConnectError), ("ftp://127.0.0.1/", httpx.UnsupportedProtocol)],
)
def test_request_that_cannot_be_sent_says_so(url: str, kind: type[Exception]) -> None:
    async def run() -> None:
        async with http_client(30.0) as client:
            await client.request("GET", url)

    with pytest.raises(kind):
        asyncio.run(run())


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _, serve = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def run() -> None:
        async with served(serve) as port:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            async with http_client(30.0) as client:
                await client.request("GET", "http://elsewhere.invalid/path?a=1")
                with pytest.raises(httpx.ConnectError):
                    await client.request("GET", "http://127.0.0.1:9/")

    asyncio.run(run())
    assert [one.partition(b"\r\n")[0] for one in seen] == [b"GET http://elsewhere.invalid/path?a=1 HTTP/1.1"]
