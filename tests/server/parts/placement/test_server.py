"""The server as a process: what it needs to start, how it stops, and what it keeps."""

import contextlib
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from roost.bench.loopback import free_port
from roost.server.process import prepare_database
from support.forked import Forked, run_forked
from support.placement_api import allocation, uuid_of
from support.waiting import Deadline

A = uuid_of("a")
HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}
ENVIRONMENT = {**os.environ, "OS_API__AUTH_STRATEGY": "noauth2"}
SECONDS = 20.0


class Served:
    """A server of ours in a process group of its own."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = ["serve", "--port", str(self.port), "--database", f"sqlite:///{folder}/roost.db"]
        self.process = Forked(*command, "--workers", str(workers), env=ENVIRONMENT, start_new_session=True)
        self.client = httpx.Client(base_url=self.url, headers=HEADERS, timeout=SECONDS)
        until = Deadline(SECONDS)
        while not until.passed:
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/").status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def end(self, number: int) -> int:
        """Send a signal to all of its processes; the exit status."""
        self.client.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        return self.process.wait(SECONDS)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    yield server
    server.end(signal.SIGKILL)


def refused(*arguments: str, **environment: str) -> str:
    """What ``roost serve`` says when it cannot run."""
    done = run_forked("serve", *arguments, env={**ENVIRONMENT, **environment}, seconds=SECONDS)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("roost: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_sigterm_stops_it_and_the_port_in_use_is_refused(served: Served, tmp_path: Path) -> None:
    taken = refused("--port", str(served.port), "--database", f"sqlite:///{tmp_path}/other.db")
    assert f"cannot listen on 127.0.0.1 port {served.port}" in taken
    assert served.end(signal.SIGTERM) == 0


def test_after_kill_9_everything_acknowledged_is_there(served: Served, tmp_path: Path) -> None:
    acknowledged = []
    for number in range(20):
        answer = served.client.post("/resource_providers", json={"name": f"host-{number}"})
        acknowledged.append(answer.json()["uuid"])
    served.end(signal.SIGKILL)
    again = Served(tmp_path)
    found = again.client.get("/resource_providers").json()["resource_providers"]
    again.end(signal.SIGTERM)
    assert {each["uuid"] for each in found} == set(acknowledged)


def test_workers_stop_when_their_parent_is_killed(served: Served) -> None:
    os.kill(served.process.pid, signal.SIGKILL)
    until = Deadline(SECONDS)
    while not until.passed:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", served.port)):
                return
        time.sleep(0.1)
    raise AssertionError("a worker still has the port")


def test_several_workers_write_to_one_sqlite_file(tmp_path: Path) -> None:
    server = Served(tmp_path, workers=3)
    server.client.post("/resource_providers", json={"name": "a", "uuid": A})
    body = {"inventories": {"VCPU": {"total": 40}}, "resource_provider_generation": 0}
    server.client.put(f"/resource_providers/{A}/inventories", json=body)

    def claim(number: int) -> tuple[int, bool]:
        """The status of a claim, and whether another worker sees it at once."""
        path = f"/allocations/{uuid_of(f'c{number}')}"
        with httpx.Client(base_url=server.url, headers=HEADERS, timeout=SECONDS) as client:
            status = client.put(path, json=allocation({A: {"VCPU": 1}})).status_code
        with httpx.Client(base_url=server.url, headers=HEADERS, timeout=SECONDS) as client:
            return status, bool(client.get(path).json()["allocations"]) == (status == 204)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(claim, range(60)))
    used = server.client.get(f"/resource_providers/{A}/usages").json()["usages"]
    server.end(signal.SIGTERM)
    assert sorted(status for status, _ in outcomes) == [204] * 40 + [409] * 20
    assert all(seen for _, seen in outcomes)
    assert used == {"VCPU": 40}


def test_what_must_be_put_right_is_said_in_one_line(tmp_path: Path) -> None:
    port = ("--port", str(free_port()))
    database = ("--database", f"sqlite:///{tmp_path}/roost.db")
    assert "OS_API__AUTH_STRATEGY=noauth2" in refused(*port, *database, OS_API__AUTH_STRATEGY="keystone")
    assert "no database" in refused(*port)
    assert "cannot open database" in refused(*port, "--database", f"sqlite:///{tmp_path}/none/roost.db")
    assert "placement.conf" in refused(*port, *database, "--config-file", f"{tmp_path}/placement.conf")
    prepare_database(f"sqlite:///{tmp_path}/roost.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "roost.db")) as connection, connection:
        connection.execute("UPDATE ledger_schema SET version_num = '9999'")
    assert "revision 9999, newer than this program" in refused(*port, *database)
    (tmp_path / "roost.db").write_bytes(b"this is no database " * 200)
    assert "roost.db" in refused(*port, *database)


def test_a_configuration_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(
        f"[api]\nauth_strategy = keystone\n[placement_database]\nconnection = sqlite:///{tmp_path}/x/y.db\n"
    )
    port = ("--port", str(free_port()))
    found = f"cannot open database sqlite:///{tmp_path}/x/y.db"
    assert found in refused(*port, "--config-file", str(file))
    assert found in refused(*port, OS_PLACEMENT_CONFIG_DIR=str(tmp_path))
    strategy = ("--set", "api.auth_strategy=keystone")
    assert "has no auth_type" in refused(*port, *strategy, "--config-file", str(file))
    assert "api.auth_strategy" in refused(*port, "--set", "api.auth_strategy=guess")
    assert "no such option" in refused(*port, "--set", "api.nothing=1")
    assert "GROUP.OPTION=VALUE" in refused(*port, "--set", "nothing")


def test_help_has_an_example() -> None:
    done = run_forked("serve", "--help", seconds=SECONDS)
    assert "Example: OS_API__AUTH_STRATEGY=noauth2 roost serve" in done.stdout
