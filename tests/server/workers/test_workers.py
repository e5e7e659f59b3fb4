"""`roost serve` as processes: workers that are killed, replaced and stopped while clients go on."""

import http.client
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.server.workers.supervision import SupervisionRules
from support.serving import SECONDS, Serving
from support.steady_load import SteadyLoad, client_ports, freeze
from support.waiting import wait_for


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """A configuration whose policy lets everybody see resource providers, unless it is changed."""
    path = tmp_path / "placement.conf"
    path.write_text(f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n")
    (tmp_path / "policy.yaml").write_text('"placement:resource_providers:list": "@"\n')
    return path


@pytest.fixture
def serving(tmp_path: Path, configuration: Path) -> Iterator[Serving]:
    arguments = ("--config-file", str(configuration))
    server = Serving(f"sqlite:///{tmp_path}/api.db", tmp_path / "log", workers=2, arguments=arguments)
    wait_for(lambda: "with 2 worker(s)" in server.said())
    yield server
    server.end(signal.SIGKILL)


def load_on(serving: Serving) -> SteadyLoad:
    return SteadyLoad(lambda: http.client.HTTPConnection("127.0.0.1", serving.port, timeout=SECONDS))


def test_workers_are_killed_each_second_and_only_the_requests_that_they_held_fail(serving: Serving) -> None:
    random_choice = random.Random(9)
    held: set[int] = set()
    killed: set[int] = set()
    with load_on(serving) as load:
        for _ in range(8):
            load.wait_for_answers(20)
            victim = random_choice.choice(sorted(serving.workers))
            freeze(victim)
            held |= client_ports(victim)
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
            time.sleep(1.0)
        load.wait_for_answers(20)
    assert len(killed) == 8
    assert set(load.statuses) == {200}
    assert {each.port for each in load.unanswered} <= held
    wait_for(lambda: len(serving.workers) == 2)
    lost = [line for line in serving.said().splitlines() if "a worker ended and is started again" in line]
    assert len(lost) == 8
    assert all(any(f"pid={pid} how='signal 9 (Killed)'" in line for line in lost) for pid in killed)
    assert serving.pid not in killed
    serving.terminate()
    assert serving.wait() == 0


def test_a_killed_worker_leaves_the_connections_that_wait_to_the_next_one(serving: Serving) -> None:
    """All workers are stopped, so that new connections wait in the kernel. Then they are killed."""
    workers = serving.workers
    for pid in workers:
        freeze(pid)
    waiting = [http.client.HTTPConnection("127.0.0.1", serving.port, timeout=SECONDS) for _ in range(10)]
    for each in waiting:
        each.request("GET", "/")
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    assert [each.getresponse().status for each in waiting] == [200] * 10
    for each in waiting:
        each.close()


def test_a_worker_that_stands_still_is_replaced_and_the_others_serve(serving: Serving) -> None:
    before = serving.workers
    still = min(before)
    freeze(still)
    wait_for(lambda: len(serving.workers) == 2 and still not in serving.workers)
    # Each new connection meets a worker that answers.
    for _ in range(20):
        assert serving.ask("GET", "/healthz").status_code == 200
    assert before - {still} <= serving.workers
    lines = [
        line for line in serving.said().splitlines() if "the event loop of a worker does not turn" in line
    ]
    assert len(lines) == 1 and f"pid={still} " in lines[0]


def test_a_service_that_stood_still_as_a_whole_keeps_its_workers(serving: Serving) -> None:
    before = serving.workers
    for pid in (serving.pid, *before):
        freeze(pid)
    time.sleep(SupervisionRules(1).silent_seconds + 1.0)
    for pid in (serving.pid, *before):
        os.kill(pid, signal.SIGCONT)
    with load_on(serving) as load:
        load.wait_for_answers(50)
        time.sleep(2.0)
    assert serving.workers == before
    assert "does not turn" not in serving.said()


def test_sighup_changes_the_policy_and_loses_no_request(serving: Serving, configuration: Path) -> None:
    policy = configuration.with_name("policy.yaml")
    before = serving.workers
    with load_on(serving) as load:
        load.wait_for_answers(20)
        policy.write_text('"placement:resource_providers:list": "!"\n')
        serving.send_signal(signal.SIGHUP)
        wait_for(lambda: not serving.workers & before)
        load.wait_for_answers(20)
    assert load.lost == []
    assert set(load.statuses) == {200, 403}
    assert serving.ask("GET", "/resource_providers").status_code == 403
    assert len(serving.workers) == 2


def test_a_wrong_configuration_is_not_taken(serving: Serving, configuration: Path) -> None:
    before = serving.workers
    configuration.write_text("[placement]\nmax_allocation_candidates = many\n")
    serving.send_signal(signal.SIGHUP)
    wait_for(lambda: "the old one stays in use" in serving.said())
    assert serving.workers == before
    [line] = [line for line in serving.said().splitlines() if "stays in use" in line]
    assert "many" in line and "max_allocation_candidates" in line
    assert serving.ask("GET", "/resource_providers").status_code == 200


def test_options_that_only_a_restart_changes_are_named(serving: Serving, configuration: Path) -> None:
    before = serving.workers
    text = configuration.read_text() + "[placement_database]\nconnection = sqlite:////other.db\n"
    configuration.write_text(text)
    serving.send_signal(signal.SIGHUP)
    wait_for(lambda: not serving.workers & before)
    assert "[placement_database] connection" in serving.said()
    assert serving.ask("GET", "/resource_providers").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_signals_of_habit_kill_no_process(serving: Serving, number: signal.Signals) -> None:
    """SIGHUP to a worker replaces it; the service goes on."""
    before = serving.workers
    for pid in (serving.pid, *before):
        if not (number == signal.SIGHUP and pid == serving.pid):
            os.kill(pid, number)
    with load_on(serving) as load:
        load.wait_for_answers(50)
        if number == signal.SIGHUP:
            wait_for(lambda: not serving.workers & before)
            load.wait_for_answers(50)
    assert load.lost == []
    if number != signal.SIGHUP:
        assert serving.workers == before


def test_sigterm_finishes_what_is_under_way(serving: Serving) -> None:
    with load_on(serving) as load:
        load.wait_for_answers(50)
        serving.terminate()
        assert serving.wait() == 0
    # Requests that were under way are answered; later ones cannot connect, or find a closed connection.
    assert set(load.statuses) == {200}
    assert not [each for each in load.unanswered if "IncompleteRead" in each.error]


def test_the_memory_limit_replaces_workers(tmp_path: Path) -> None:
    """The limit is below what a worker needs, so each worker is replaced, once in a while."""
    url, log = f"sqlite:///{tmp_path}/api.db", tmp_path / "log"
    serving = Serving(url, log, arguments=("--worker-memory-limit", "20"))
    try:
        [before] = serving.workers
        with load_on(serving) as load:
            wait_for(lambda: serving.workers.isdisjoint({before}))
            load.wait_for_answers(20)
        assert load.lost == []
        assert f"a worker is over its memory limit and is replaced pid={before}" in serving.said()
    finally:
        serving.end(signal.SIGKILL)


class UnixConnection(http.client.HTTPConnection):
    """A connection to a UNIX socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))


def test_a_unix_socket_is_served_by_workers_that_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    url, log = f"sqlite:///{tmp_path}/api.db", tmp_path / "log"
    serving = Serving(url, log, workers=2, arguments=("--uds", str(path)), waits=False)
    try:
        wait_for(lambda: f"on the UNIX socket {path} with 2 worker(s)" in serving.said())
        before = serving.workers
        with SteadyLoad(lambda: UnixConnection(path), clients=4) as load:
            load.wait_for_answers(20)
            serving.send_signal(signal.SIGHUP)
            wait_for(lambda: not serving.workers & before)
            load.wait_for_answers(20)
            assert load.lost == []
            for pid in serving.workers:
                freeze(pid)
            for pid in serving.workers:
                os.kill(pid, signal.SIGKILL)
            load.wait_for_answers(20)
        assert len(load.unanswered) <= 4
        serving.terminate()
        assert serving.wait() == 0
        assert not path.exists()
    finally:
        serving.end(signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_request_that_never_ends_does_not_keep_the_service(
    tmp_path: Path, configuration: Path, number: signal.Signals
) -> None:
    """The parent ends by SIGTERM, or by SIGKILL, after which the worker has to end without it."""
    configuration.write_text("[overload]\nidle_seconds = 60\nbody_seconds = 600\n")
    arguments = ("--config-file", str(configuration), "--drain-seconds", "1")
    serving = Serving(f"sqlite:///{tmp_path}/api.db", tmp_path / "log", arguments=arguments)
    [worker] = serving.workers
    try:
        with socket.create_connection(("127.0.0.1", serving.port)) as client:
            client.sendall(b"POST /resource_providers HTTP/1.1\r\nHost: roost\r\nX-Auth-Token: admin\r\n")
            client.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            wait_for(lambda: client.getsockname()[1] in client_ports(worker))
            serving.send_signal(number)
            assert serving.wait() == (0 if number == signal.SIGTERM else -number)
            wait_for(lambda: not Path(f"/proc/{worker}").exists())
    finally:
        serving.end(signal.SIGKILL)
