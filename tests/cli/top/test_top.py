"""`roost top` against a real service, and its screen as a terminal shows it."""

import io
import json
import os
import pty
import select
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from cli.top.test_figures import BEFORE, NOW
from roost.bench.loopback import free_port
from roost.cli.top.figures import figures, parse_sample
from roost.cli.top.screen import screen
from roost.cli.top.view import CapacityView, FullHost, ResourceUse, View
from support.processes import ROOST, RoostUp, run_roost

top = partial(run_roost, "top", "--once", "--interval", "0.2")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a system of 6 hosts, on one of which are two instances."""
    with RoostUp(tmp_path_factory.mktemp("up"), ["--hosts", "6", "--cells", "1"]) as running:
        running.wait_until_up()
        with running.client() as client:
            body = {"flavor": {"vcpus": 32, "memory_mb": 1024, "name": "large"}, "count": 2}
            assert client.post("/v1/instances", json=body).status_code == 202
            while client.get("/v1/capacity").json()["resources"]["VCPU"]["used"] < 64:
                pass
        yield f"http://127.0.0.1:{running.port}"


@pytest.fixture
def metrics() -> Iterator[str]:
    """A metrics address whose answers are two samples, one after the other."""
    answers = [BEFORE, NOW]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/metrics"
            text = answers.pop(0).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_scripts_get_hosts_use_and_rates(up: str, metrics: str) -> None:
    done = top("--url", up, "--metrics", metrics, "--json", "--fullest", "1")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["capacity"]["trees"] == 6
    assert found["capacity"]["resources"]["VCPU"] == {"providers": 6, "capacity": 384, "used": 64}
    [fullest] = found["capacity"]["fullest"]
    assert (fullest["resource_class"], fullest["used"]) == ("VCPU", 32)
    assert found["figures"]["operations"][0]["operation"] == "GET /usages"
    assert found["figures"]["lag_commits"] == 3


def test_people_get_tables(up: str, metrics: str) -> None:
    done = top("--url", up, "--metrics", metrics)
    assert done.returncode == 0
    for said in ("6 hosts", "VCPU", "16.7%", "GET /usages", "refusals by cause: placement"):
        assert said in done.stdout


def test_without_metrics_it_says_how_to_have_rates(up: str) -> None:
    done = top("--url", up)
    assert done.returncode == 0
    assert "6 hosts" in done.stdout
    assert "--metrics-port" in done.stdout


def test_an_address_that_never_answered_has_no_last_values() -> None:
    console = Console(width=100, record=True)
    console.print(screen(View(None, None, ["it cannot be read"]), has_metrics=True, now=4700.0))
    shown = console.export_text()
    assert ("it cannot be read" in shown, "last answer" in shown) == (True, False)


def test_an_address_that_does_not_answer_is_named_and_the_other_is_shown(up: str, metrics: str) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    done = top("--url", up, "--metrics", nowhere)
    assert done.returncode == 1
    assert f"{nowhere}/metrics cannot be read" in done.stdout
    assert "6 hosts" in done.stdout
    done = top("--url", nowhere, "--metrics", metrics)
    assert done.returncode == 1
    assert f"{nowhere} cannot be read" in done.stdout
    assert "GET /usages" in done.stdout


def test_a_refused_token_and_an_address_of_something_else_are_named(up: str, tmp_path: Path) -> None:
    done = top("--url", up, "--token", "nobody:project", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"] == [f"{up} cannot be read: status 403 (see --token)"]
    done = top("--url", up, "--metrics", f"{up}/v1/openapi.json")
    assert done.returncode == 1
    assert "openapi.json cannot be read" in done.stdout


def test_the_metrics_of_a_real_service_become_figures(tmp_path: Path) -> None:
    port = free_port()
    options = ["--hosts", "6", "--cells", "1", "--metrics-port", str(port)]
    with RoostUp(tmp_path / "up", options) as running, running.client() as client:
        running.wait_until_up()
        addresses = ["--url", f"http://127.0.0.1:{running.port}", "--metrics", f"http://127.0.0.1:{port}"]
        command = [ROOST, "top", "--once", "--json", "--interval", "5", *addresses]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as watching:
            while watching.poll() is None:
                small = {"flavor": {"vcpus": 0, "memory_mb": 1}}
                assert client.post("/v1/instances", json=small).status_code == 202
                large = {"flavor": {"vcpus": 9999, "memory_mb": 1}}
                assert client.post("/v1/instances", json=large).status_code == 202
            assert watching.stdout is not None
            found = msgspec.json.decode(watching.stdout.read(), type=View)
    assert found.problems == []
    assert found.figures is not None
    assert found.figures.seconds >= 5
    rates = {each.operation: each for each in found.figures.operations}
    asked = rates["POST /v1/instances"]
    assert asked.rate > 0
    assert asked.failed == 0
    assert asked.p50 is not None and asked.p99 is not None and 0 < asked.p50 <= asked.p99
    assert found.figures.decisions["placed"] > 0
    assert found.figures.refusals["placement"] > 0
    assert found.figures.decision_p50 is not None
    assert found.figures.failing == []
    assert found.figures.commits is not None and found.figures.commits > 0
    assert found.figures.lag_commits is not None
    [process] = found.figures.processes
    assert process.started is not None
    assert process.memory is not None and process.memory > 10 * 2**20
    assert process.cpu is not None and process.cpu > 0


def shown(view: View) -> str:
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(screen(view, has_metrics=True, now=4700.0))
    return console.export_text()


def test_the_screen_has_all_figures_and_marks_what_is_full() -> None:
    capacity = CapacityView(
        12,
        3,
        2,
        {"VCPU": ResourceUse(2, 100, 95), "DISK_GB": ResourceUse(3, 1000, 500)},
        [FullHost("host-[1]", "VCPU", 50, 50)],
    )
    compared = figures(parse_sample(BEFORE, 100.0), parse_sample(NOW, 102.0))
    lines = [line.split() for line in shown(View(capacity, compared, ["x cannot be read: y"])).splitlines()]
    for expected in (
        "x cannot be read: y",
        "DISK_GB 3 1,000 500 50.0% ██████████░░░░░░░░░░",
        "VCPU 2 100 95 95.0% ███████████████████░",
        "host-[1] VCPU 50 50 100.0%",
        "GET /usages 10 1 10.0 98.2",
        "decisions: placed 1/s, refused 2/s; p50 5.0 ms, p99 9.9 ms",
        "not ready: check ledger fails, see /readyz",
        "refused with 503 at a limit: reads 3/s",
        "refusals by cause: placement 2/s",
        "1 1 h 1 min 50%",
        "in flight unknown waiting for a commit unknown commits/s 10 outruns/s unknown reloads/s unknown",
    ):
        assert expected.split() in lines, expected
    headline = "2 hosts, 3 providers, version 12, lag 3 commits, 1.2 s"
    assert lines[0][1:] == headline.split()


def test_the_screen_fits_a_narrow_terminal() -> None:
    compared = figures(parse_sample(BEFORE, 100.0), parse_sample(NOW, 102.0))
    console = Console(record=True, width=60, file=io.StringIO())
    console.print(screen(View(None, compared, []), has_metrics=True, now=4700.0))
    assert max(len(line) for line in console.export_text().splitlines()) <= 60


def test_a_terminal_is_drawn_anew_and_an_outage_shows(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    with RoostUp(tmp_path / "up", ["--hosts", "6", "--cells", "1"]) as running:
        running.wait_until_up()
        url = f"http://127.0.0.1:{running.port}"
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        command = [ROOST, "top", "--url", url, "--interval", "0.2"]
        with ExitStack() as ended:
            watching = ended.enter_context(
                subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)
            )
            ended.callback(watching.kill)
            os.close(inside)
            read_until(terminal, "6 hosts")
            read_until(terminal, "6 hosts")
            running.kill()
            read_until(terminal, f"{url} cannot be read")
            assert "6 hosts" in read_until(terminal, "Its values are those of its last answer")
            watching.send_signal(signal.SIGINT)
            read_until_end(terminal)
            assert watching.wait(30) == 130
    os.close(terminal)


def read_until(terminal: int, text: str) -> str:
    """What a terminal shows, up to and with a text."""
    found = ""
    while text not in found:
        assert select.select([terminal], [], [], 30.0)[0], f"{text!r} does not come: {found}"
        found += os.read(terminal, 65536).decode(errors="replace")
    return found


def read_until_end(terminal: int) -> None:
    """Read what a terminal shows until no process has it: one that nobody reads holds its writers up."""
    with suppress(OSError):  # EIO, the end of a terminal
        while select.select([terminal], [], [], 30.0)[0]:
            os.read(terminal, 65536)
