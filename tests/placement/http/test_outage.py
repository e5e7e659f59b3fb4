"""The database is stopped and killed under load, and started again: what was said to be done is done."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from roost.web.errors import OutcomeUncertain
from support.databases import Place, Servers
from support.ledgers import findings_in, upgrade
from support.placement_api import allocation, uuid_of
from support.servers import Galera
from support.serving import HEADERS, SECONDS, Serving
from support.waiting import Deadline

CLIENTS = 9
HOST = uuid_of("host")


class Load:
    """Clients that claim without end, each at one of our processes, and keep what they were told."""

    def __init__(self, servers: list[Serving]) -> None:
        self.done: list[tuple[int, str]] = []
        self.unknown: set[str] = set()
        self.wrong: list[str] = []
        self.refused_writes = [0] * len(servers)
        self.refused_reads = [0] * len(servers)
        self._numbers = count()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._claim, args=(servers[number % len(servers)], number % len(servers)))
            for number in range(CLIENTS)
        ]

    @contextlib.contextmanager
    def running(self) -> Iterator["Load"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(SECONDS)

    def done_by(self, server: int) -> int:
        return sum(1 for number, _ in self.done if number == server)

    def _claim(self, server: Serving, number: int) -> None:
        with httpx.Client(base_url=server.url, headers=HEADERS, timeout=SECONDS) as client:
            while not self._stop.is_set():
                name = f"c{next(self._numbers)}"
                path = f"/allocations/{uuid_of(name)}"
                answer = client.put(path, json=allocation({HOST: {"VCPU": 1}}))
                if answer.status_code == 204:
                    self.done.append((number, uuid_of(name)))
                elif self._is_away(answer):
                    # Of what is refused with Retry-After nothing is ever carried out.
                    if "retry-after" not in answer.headers:
                        self.unknown.add(uuid_of(name))
                    self.refused_writes[number] += 1
                    time.sleep(0.05)
                answer = client.get(f"/resource_providers/{HOST}/usages")
                if answer.status_code != 200 and self._is_away(answer):
                    self.refused_reads[number] += 1

    def _is_away(self, answer: httpx.Response) -> bool:
        away = answer.status_code == 503
        if away:
            is_unknown = answer.json()["errors"][0]["code"] == OutcomeUncertain.code
            away = answer.headers.get("retry-after") == (None if is_unknown else "1")
        if not away:
            self.wrong.append(f"{answer.status_code} {answer.text}")
        return away


def until(what: str, true: Callable[[], bool]) -> None:
    end = Deadline(SECONDS)
    while not true():
        assert not end.passed, f"waited in vain until {what}"
        time.sleep(0.02)


@contextlib.contextmanager
def under_load(place: Place, folder: Path, workers: int) -> Iterator[tuple[Load, list[Serving]]]:
    """Processes on a new database, one for each URL, with clients; at the end all is as they were told."""
    upgrade(place.url)
    with contextlib.ExitStack() as stack:
        running = []
        for url in place.urls:
            running.append(Serving(url, folder / "log", workers))
            stack.callback(running[-1].end)
        first = running[0]
        first.ask("POST", "/resource_providers", {"name": "host", "uuid": HOST})
        body = {"inventories": {"VCPU": {"total": 2**30}}, "resource_provider_generation": 0}
        assert first.ask("PUT", f"/resource_providers/{HOST}/inventories", body).status_code == 200
        load = Load(running)
        with load.running():
            until("some claims are done", lambda: len(load.done) > 30)
            yield load, running
        assert load.wrong == []
        held = first.ask("GET", f"/resource_providers/{HOST}/allocations").json()["allocations"].keys()
        told = {consumer for _, consumer in load.done}
        assert told <= held, "acknowledged claims are lost"
        assert held <= told | load.unknown, "claims are there that nobody made"
        for server in running:
            used = server.ask("GET", f"/resource_providers/{HOST}/usages").json()["usages"]
            assert used == {"VCPU": len(held)}
    assert findings_in(place) == []


def go_away_and_come_back(servers: Servers, kind: str, folder: Path, rounds: int) -> None:
    database = servers.new(kind, f"outage-{folder.name}", durable=True)
    assert not isinstance(database, Galera)
    try:
        database.start()
        place = Place(kind, tuple(database.urls(database.create_database())))
        with under_load(place, folder, workers=2) as (load, _):
            for end in (database.kill, database.stop) * rounds:
                writes, reads = load.refused_writes[0], load.refused_reads[0]
                end()
                until("writes are refused", lambda: load.refused_writes[0] > writes + 5)  # noqa: B023
                until("reads are refused", lambda: load.refused_reads[0] > reads + 5)  # noqa: B023
                database.start()
                before = len(load.done)
                until("claims are done again", lambda: len(load.done) > before + 30)  # noqa: B023
    finally:
        database.kill()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_goes_away_and_comes_back(servers: Servers, kind: str, tmp_path: Path) -> None:
    go_away_and_come_back(servers, kind, tmp_path, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_goes_away_and_comes_back_over_and_over(servers: Servers, kind: str, tmp_path: Path) -> None:
    go_away_and_come_back(servers, kind, tmp_path, 10)


def test_a_node_of_galera_is_killed_and_the_others_go_on(servers: Servers, tmp_path: Path) -> None:
    with servers.place("galera", tmp_path) as place:
        cluster = servers.running("galera")
        assert isinstance(cluster, Galera)
        node = cluster.nodes[2]
        with under_load(place, tmp_path, workers=1) as (load, _):
            node.kill()
            until("its process refuses", lambda: load.refused_writes[2] > 3 and load.refused_reads[2] > 3)
            others = [load.done_by(number) for number in (0, 1)]
            until("the others go on", lambda: all(load.done_by(n) > others[n] + 10 for n in (0, 1)))
            node.rejoin()
            before = load.done_by(2)
            until("its process is back", lambda: load.done_by(2) > before + 10)


@pytest.mark.nightly
def test_without_a_quorum_nothing_is_done_and_nothing_lost(servers: Servers, tmp_path: Path) -> None:
    cluster = servers.new("galera", "quorum", durable=True)
    assert isinstance(cluster, Galera)
    try:
        cluster.start()
        place = Place("galera", tuple(cluster.urls(cluster.create_database())))
        with under_load(place, tmp_path, workers=1) as (load, _):
            for node in cluster.nodes[1:]:
                node.kill()
            refused = load.refused_writes[0], load.refused_reads[0]
            until("who is left refuses to write", lambda: load.refused_writes[0] > refused[0] + 3)
            until("who is left refuses to read", lambda: load.refused_reads[0] > refused[1] + 3)
            for node in cluster.nodes[1:]:
                node.recover()
            for node in cluster.nodes:
                node.wait()
            before = [load.done_by(number) for number in range(3)]
            until("all are back", lambda: all(load.done_by(n) > before[n] + 10 for n in range(3)))
    finally:
        cluster.kill()
