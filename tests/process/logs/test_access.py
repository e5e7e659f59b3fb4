"""Lines of a real service: access lines, ids of requests, and nothing that a client could forge."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.serving import Serving
from support.waiting import patience, wait_for

GLOBAL = "req-12345678-1234-4234-a234-123456789abc"
OWN = re.compile(r"req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")
FORGED = "2026-01-31T12:00:00.000+00:00 warning 1 roost.ledger: forged"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Path]]:
    """A service that logs as JSON to standard error, with all that debug shows, and its log."""
    folder = tmp_path_factory.mktemp("service")
    log = folder / "log"
    settings = ("DEFAULT.access_log=true", "DEFAULT.use_json=true", "DEFAULT.debug=true")
    serving = Serving(f"sqlite:///{folder}/roost.db", log, settings=settings)
    yield serving, log
    serving.end()


def ask(
    serving: Serving, method: str, path: str, content: str | None = None, **headers: str
) -> httpx.Response:
    """Send a request. Underlines in names of headers stand for hyphens."""
    sent = {"x-auth-token": "admin", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with httpx.Client(base_url=serving.url, timeout=patience(60)) as client:
        return client.request(method, path, content=content, headers=sent)


def lines(log: Path, **wanted: Any) -> list[dict[str, Any]]:
    """The lines of a log with these values."""
    found = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in found if wanted.items() <= line.items()]


def only(find: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    """The one line that is found, which is written when the client already has its response."""
    wait_for(lambda: bool(find()))
    [line] = find()
    return line


def test_each_request_has_a_line(service: tuple[Serving, Path]) -> None:
    serving, log = service
    answer = ask(serving, "GET", "/resource_providers?name=one", x_auth_token="alice:prj")
    own = answer.headers["x-openstack-request-id"]
    line = only(lambda: lines(log, request_id=own, logger="roost.access"))
    assert line["event"] == "request" and line["level"] == "info"
    assert (line["method"], line["path"]) == ("GET", "/resource_providers?name=one")
    assert line["status"] == answer.status_code
    assert line["bytes"] == len(answer.content)
    assert (line["user"], line["project"]) == ("alice", "prj")
    assert line["milliseconds"] > 0
    assert "global_request_id" not in line


def test_ids_are_in_response_errors_and_lines(service: tuple[Serving, Path]) -> None:
    serving, log = service
    answer = ask(serving, "GET", "/traits/NOT_THERE", x_openstack_request_id=GLOBAL)
    own = answer.headers["x-openstack-request-id"]
    assert OWN.fullmatch(own) and own != GLOBAL
    assert answer.status_code == 404 and answer.json()["errors"][0]["request_id"] == own
    line = only(lambda: lines(log, request_id=own, logger="roost.access"))
    assert line["global_request_id"] == GLOBAL and line["status"] == 404


@pytest.mark.parametrize(
    "path", ["/traits/A%0A" + FORGED.replace(" ", "%20"), "/traits/%1B%5B2J%C2%85%E2%80%AE"]
)
def test_a_path_cannot_forge_a_line(service: tuple[Serving, Path], path: str) -> None:
    serving, log = service
    own = ask(serving, "GET", path).headers["x-openstack-request-id"]
    line = only(lambda: lines(log, request_id=own, logger="roost.access"))
    assert line["path"] == httpx.URL(f"http://x{path}").path
    check_log(log)


def test_headers_and_bodies_cannot_forge_a_line(service: tuple[Serving, Path]) -> None:
    serving, log = service
    for name in ("x-openstack-request-id", "user-agent", "x-auth-token", "content-type", "x-roles"):
        # In a header, servers take no end of a line, but other control characters.
        _raw(serving, f"{name}: \t{GLOBAL}\x1b[2J\x85 {FORGED}".encode("latin-1"))
    ask(serving, "PUT", "/resource_providers/x", f'{{"name": "\\n{FORGED}"}}')
    own = ask(serving, "GET", "/").headers["x-openstack-request-id"]
    only(lambda: lines(log, request_id=own, logger="roost.access"))
    assert not lines(log, global_request_id=f"{GLOBAL}\x1b[2J\x85 {FORGED}")
    check_log(log)


def test_no_line_has_a_token(service: tuple[Serving, Path]) -> None:
    serving, log = service
    secrets = {"x_service_token": "SECRET-1", "authorization": "Bearer SECRET-2", "cookie": "a=SECRET-3"}
    own = ask(serving, "GET", "/traits", **secrets).headers["x-openstack-request-id"]
    only(lambda: lines(log, request_id=own, logger="roost.access"))
    assert "SECRET" not in log.read_text()


def check_log(log: Path) -> None:
    """Check that a log has no control characters, and no line that the service did not begin itself."""
    for line in log.read_bytes().decode().split("\n"):
        assert not CONTROL.search(line), line
        assert not line.startswith(FORGED[:10])


def _raw(serving: Serving, header: bytes) -> None:
    """Send a request with a header that clients refuse to send; read the beginning of the response."""
    host, _, port = serving.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        lines = (b"GET /resource_providers/bad HTTP/1.1", b"host: x", b"connection: close", header, b"", b"")
        connection.sendall(b"\r\n".join(lines))
        connection.recv(1000)
