"""Reads of services: what comes, over one connection, and how each failure is told."""

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from roost.bench.loopback import free_port
from roost.cli.connection import connection_to
from roost.cli.top.service_reader import ServiceReader, ServiceSilent
from support.processes import ROOST


class Number(msgspec.Struct):
    """An answer."""

    number: int


class Service(ThreadingHTTPServer):
    """Answers paths with a status and a body. ``connections``: number of opened ones. ``paths``: as asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections = 0
        self.paths: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        status, text = {"/good": (200, b'{"number": 7, "more": []}'), "/odd": (200, b"[]")}.get(
            self.path.partition("?")[0], (int(self.path[1:]) if self.path[1:].isdigit() else 404, b"{}")
        )
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_one_connection_serves_many_reads(service: Service) -> None:
    with ServiceReader({"scheduler": connection_to("scheduler", service.url)}) as reader:
        for _ in range(5):
            assert reader.read("scheduler", "/good", Number, sort="used", search=None).number == 7
    assert service.paths == ["/good?sort=used"] * 5
    assert service.connections == 1


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/odd", "Expected `object`, got `array`"),
        ("/403", "status 403 (see --token)"),
        ("/503", "status 503"),
        ("/404", "it has no such list; it is another service, or an older one"),
    ],
)
def test_each_failure_names_the_service_and_what_is_wrong(service: Service, path: str, told: str) -> None:
    with (
        ServiceReader({"scheduler": connection_to("scheduler", service.url)}) as reader,
        pytest.raises(ServiceSilent) as silent,
    ):
        reader.read("scheduler", path, Number)
    assert str(silent.value) == f"the scheduler at {service.url} cannot be read: {told}"


def test_an_address_where_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with ServiceReader({"conductor": connection_to("conductor", url)}) as reader:
        for _ in range(2):
            with pytest.raises(ServiceSilent, match=f"the conductor at {url} cannot be read: "):
                reader.read("conductor", "/v1/cells", Number)


def test_a_profile_of_placement_alone_is_enough_for_the_overview(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    (tmp_path / "roost").mkdir()
    (tmp_path / "roost" / "config.toml").write_text(f'[profiles.one]\nplacement = "{url}"\n')
    command = [ROOST, "top", "--once", "--profile", "one"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, f"{url} cannot be read" in done.stdout) == (1, True), done.stderr
    with ServiceReader({}) as reader, pytest.raises(ServiceSilent, match="no address of the scheduler"):
        reader.read("scheduler", "/v1/scheduler/hosts", Number)
