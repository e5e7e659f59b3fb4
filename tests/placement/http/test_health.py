"""`/healthz`, `/readyz` and `/healthcheck` of a service, while what it needs goes away and comes back."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import webob
from oslo_config import cfg
from oslo_middleware.healthcheck import Healthcheck

from roost.bench.loopback import free_port, free_ports
from support.databases import Servers
from support.ledgers import upgrade
from support.servers import Galera
from support.serving import SECONDS, Serving, roost
from support.stopping import stopped
from support.waiting import Deadline

SHORT = "healthcheck.check_timeout=0.3"
FOR_HOURS = "placement_database.answer_timeout=7200"


def probe(serving: Serving, path: str = "/readyz", method: str = "GET", **headers: str) -> httpx.Response:
    """Ask without a token, on a new connection."""
    return httpx.request(method, serving.url + path, headers=headers, timeout=SECONDS)


def failing(serving: Serving) -> set[str]:
    """The names of the checks that fail. Each failing one has a reason, and the status fits."""
    answer = probe(serving)
    report = answer.json()
    names = {check["name"] for check in report["checks"] if not check["passed"]}
    assert all(bool(check.get("reason")) != check["passed"] for check in report["checks"])
    assert (answer.status_code, report["ready"]) == ((503, False) if names else (200, True))
    return names


def until(what: str, true: Callable[[], bool]) -> None:
    end = Deadline(SECONDS)
    while not true():
        assert not end.passed, f"waited in vain until {what}"
        time.sleep(0.1)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Starts services: ``served(url, *settings)``."""
    started: list[Serving] = []

    def serve(url: str, *settings: str, port: int | None = None) -> Serving:
        log = tmp_path / f"log{len(started)}"
        started.append(Serving(url, log, settings=settings, port=port))
        return started[-1]

    yield serve
    for serving in started:
        serving.end()


def test_probes_need_no_token_and_head_is_get_without_a_body(
    served: Callable[..., Serving], tmp_path: Path
) -> None:
    serving = served(f"sqlite:///{tmp_path}/roost.db")
    assert probe(serving, "/healthz").json() == {"alive": True}
    report = probe(serving).json()
    assert report["ready"]
    assert [check["name"] for check in report["checks"]] == ["database", "ledger", "history"]
    for path in ("/healthz", "/readyz", "/healthcheck"):
        got, head = probe(serving, path), probe(serving, path, "HEAD")
        assert (got.status_code, got.headers["cache-control"]) == (200, "no-store")
        assert (head.status_code, head.content) == (204 if path == "/healthcheck" else 200, b"")
        assert probe(serving, path, "DELETE").status_code == 405
        # Only the paths themselves are open.
        assert probe(serving, f"{path}/x").status_code == 401


def test_a_file_takes_a_process_out_of_service(served: Callable[..., Serving], tmp_path: Path) -> None:
    everywhere, at_port = tmp_path / "everywhere", tmp_path / "at_port"
    here, elsewhere = free_ports(2)
    serving = served(
        f"sqlite:///{tmp_path}/roost.db",
        f"healthcheck.disable_by_file_path={everywhere}",
        f"healthcheck.disable_by_file_paths={elsewhere}:{tmp_path},{here}:{at_port}",
        port=here,
    )
    for file in (everywhere, at_port):
        assert failing(serving) == set()
        assert probe(serving, "/healthcheck").text == "OK"
        file.touch()
        assert failing(serving) == {"file"}
        assert probe(serving, "/healthcheck").status_code == 503
        assert probe(serving, "/healthz").status_code == 200
        file.unlink()


@pytest.mark.parametrize("disabled", [False, True])
def test_healthcheck_answers_as_that_of_other_services(
    served: Callable[..., Serving], tmp_path: Path, disabled: bool
) -> None:
    file = tmp_path / "disabled"
    if disabled:
        file.touch()
    serving = served(f"sqlite:///{tmp_path}/roost.db", f"healthcheck.disable_by_file_path={file}")
    conf = cfg.ConfigOpts()
    conf([])
    theirs = Healthcheck(
        None, {"oslo_config_config": conf, "backends": "disable_by_file", "disable_by_file_path": str(file)}
    )
    accepts = (
        "",
        "*/*",
        "text/plain",
        "application/json",
        "text/html",
        "image/png",
        "text/*;q=0.1,*/*;q=0.2",
    )
    for method in ("GET", "HEAD"):
        for accept in accepts:
            headers = {"accept": accept}
            ours = probe(serving, "/healthcheck", method, **headers)
            expected = webob.Request.blank("/healthcheck", method=method, headers=headers).get_response(
                theirs
            )
            assert ours.status_code == expected.status_int, (method, accept)
            if method == "HEAD":
                assert ours.content == expected.body == b""
                continue
            assert ours.headers["content-type"].partition(";")[0] == expected.content_type, accept
            if expected.content_type == "application/json":
                assert ours.json() == expected.json
            elif expected.content_type == "text/plain":
                assert ours.content == expected.body
            else:
                assert ("DISABLED BY FILE" in ours.text) == ("DISABLED BY FILE" in expected.text) == disabled


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_database_that_hangs_is_named_within_the_time_of_a_check_and_forgotten_when_it_answers(
    served: Callable[..., Serving], servers: Servers, kind: str
) -> None:
    server = servers.new(kind, f"hangs-{kind}")
    assert not isinstance(server, Galera)
    try:
        server.start()
        url = server.url(server.create_database())
        upgrade(url)
        serving = served(url, SHORT, FOR_HOURS)
        assert failing(serving) == set()
        with stopped(server):
            # A request would wait for the database for hours: the probe does not.
            until("the database is named", lambda: failing(serving) == {"database"})
            assert all(failing(serving) == {"database"} for _ in range(20))
            assert probe(serving, "/healthz").status_code == 200
            assert probe(serving, "/healthcheck").status_code == 200
        until("the service is ready", lambda: failing(serving) == set())
        lines = [line for line in serving.said().splitlines() if "readiness" in line]
        assert ["passes again" in line for line in lines] == [False, True]
    finally:
        server.kill()


def test_a_replica_whose_position_was_trimmed_away_is_not_ready_before_it_is_loaded_anew(
    served: Callable[..., Serving], servers: Servers, tmp_path: Path
) -> None:
    with servers.place("postgresql", tmp_path) as place:
        upgrade(place.url)
        behind = served(place.url, SHORT, "healthcheck.max_lag_commits=2")
        ahead = served(place.url)
        assert failing(behind) == set()
        for number in range(5):
            assert ahead.ask("PUT", f"/resource_classes/CUSTOM_{number}").status_code == 201
        assert roost("db", "trim", "--database", place.url, "--keep", "1").returncode == 0
        engine = sa.create_engine(place.url)
        try:
            with engine.begin() as connection:
                # Commits can be read, and the fleet cannot be loaded.
                connection.exec_driver_sql("LOCK TABLE resource_providers IN ACCESS EXCLUSIVE MODE")
                until("the history is named", lambda: {"ledger", "history"} <= failing(behind))
            until("the fleet is loaded", lambda: failing(behind) == set())
            assert failing(ahead) == set()
        finally:
            engine.dispose()


def test_an_idle_process_that_is_far_behind_becomes_ready_by_being_asked(
    served: Callable[..., Serving], servers: Servers, tmp_path: Path
) -> None:
    settings = ("healthcheck.max_lag_commits=0", "healthcheck.max_lag_seconds=0")
    with servers.place("sqlite", tmp_path) as place:
        idle, busy = served(place.url, *settings), served(place.url)
        for number in range(20):
            assert busy.ask("PUT", f"/resource_classes/CUSTOM_{number}").status_code == 201
        assert failing(idle) == set()


@contextmanager
def keystone_at(port: int) -> Iterator[None]:
    """A server that tells versions as Keystone does, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(300)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_a_keystone_that_is_down_is_named(served: Callable[..., Serving], tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v3"
    values = {
        "auth_url": url,
        "www_authenticate_uri": url,
        "auth_type": "password",
        "username": "placement",
        "password": "secret",
    }
    settings = [f"keystone_authtoken.{name}={value}" for name, value in values.items()]
    serving = served(f"sqlite:///{tmp_path}/roost.db", "api.auth_strategy=keystone", *settings)
    assert failing(serving) == {"keystone"}
    with keystone_at(port):
        until("Keystone is found", lambda: failing(serving) == set())
    until("Keystone is missed", lambda: failing(serving) == {"keystone"})
    # The URL is in the log, which is not for everybody.
    assert str(port) not in probe(serving).text
    assert str(port) in serving.said()


@pytest.mark.parametrize("value", ["/no/port", "8778:", "http:/file"])
def test_a_file_for_no_port_is_refused_at_the_start(value: str, tmp_path: Path) -> None:
    setting = f"healthcheck.disable_by_file_paths={value}"
    done = roost("serve", "--database", f"sqlite:///{tmp_path}/roost.db", "--set", setting)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "disable_by_file_paths" in done.stderr
    assert repr(value) in done.stderr
