"""Keystone is asked whether it is there, without a token."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth import IdentityUnavailable
from roost.web.auth.reachability import Reachability
from web.auth.conftest import configure
from web.auth.test_keystone import silent_server

SECONDS = 0.5


@contextmanager
def answering(status: int) -> Iterator[str]:
    """An HTTP server that answers every GET with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v3"
        server.shutdown()
        thread.join()


def ask(source: Source) -> None:
    asyncio.run(Reachability(source, SECONDS).ask())


def test_keystone_answers(configured: Source) -> None:
    asyncio.run(Reachability(configured, 30.0).ask())


@pytest.mark.parametrize("status", [200, 300, 401, 404])
def test_every_answer_that_is_no_failure_counts(tmp_path: Path, status: int) -> None:
    with answering(status) as url:
        ask(configure(tmp_path, url))


@pytest.mark.parametrize("status", [500, 503])
def test_a_failure_is_told(tmp_path: Path, status: int) -> None:
    with answering(status) as url, pytest.raises(IdentityUnavailable, match=f"answers {status}"):
        ask(configure(tmp_path, url))


def test_a_keystone_that_is_down_or_silent_is_told(tmp_path: Path) -> None:
    with pytest.raises(IdentityUnavailable, match="cannot be reached"):
        ask(configure(tmp_path, f"http://127.0.0.1:{free_port()}/v3"))
    with silent_server() as url, pytest.raises(IdentityUnavailable, match="cannot be reached"):
        ask(configure(tmp_path, url))


def test_without_a_url_there_is_nothing_to_ask(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="auth_url"):
        Reachability(configure(tmp_path, ""), SECONDS)
