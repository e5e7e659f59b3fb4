"""`kill -9` at any moment loses nothing that was acknowledged, and claims nothing twice."""

import asyncio
import json
import os
import random
import subprocess
import threading
import time
import uuid
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.cli.verification import verify_database
from roost.server.backup.roles import ROLES
from roost.state.api_database.cell_mappings import CELL0
from roost.storage import Database
from support.forked import Forked
from support.processes import RoostUp, run_roost
from support.waiting import Deadline

CLIENTS = 3
UP = ("--hosts", "12", "--cells", "3", "--failure-rate", "0.2", "--build-seconds", "0.02")
SETTLED = {"active", "error"}


class Books:
    """What the clients know: what was acknowledged, and what they got no answer to.

    Of instances: ``wanted`` (nobody asked to delete them), ``deleted``, ``perhaps_deleted``. Of direct
    allocations by consumer: ``held`` (the provider and its vCPUs), ``freed``, ``perhaps_held``.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted: set[str] = set()
        self.deleted: set[str] = set()
        self.perhaps_deleted: set[str] = set()
        self.held: dict[str, str] = {}
        self.freed: set[str] = set()
        self.perhaps_held: set[str] = set()

    def tell_enough(self) -> bool:
        """Whether enough has happened for a test to be one."""
        return len(self.wanted) > 50 and len(self.deleted) > 10


class Client:
    """Does whatever its seed says until its server is gone."""

    def __init__(self, books: Books, seed: int, providers: list[str]) -> None:
        self._books = books
        self._draw = random.Random(seed)
        self._providers = providers

    def run(self, http: httpx.Client, stop: threading.Event) -> None:
        while not stop.is_set():
            act = self._draw.choices((self.ask, self.delete, self.claim, self.free), (5, 3, 2, 1))[0]
            try:
                act(http)
            except httpx.TransportError:
                return

    def ask(self, http: httpx.Client) -> None:
        vcpus = self._draw.choice((1, 2, 4))
        flavor = {"vcpus": vcpus, "memory_mb": 512, "name": f"m{vcpus}"}
        count = self._draw.randint(1, 5)
        answer = http.post("/v1/instances", json={"flavor": flavor, "count": count, "min_count": 1})
        assert answer.status_code == 202, answer.text
        with self._books.lock:
            self._books.wanted.update(answer.json()["instances"])

    def delete(self, http: httpx.Client) -> None:
        books = self._books
        with books.lock:
            if not books.wanted:
                return
            instance = self._draw.choice(sorted(books.wanted))
            books.wanted.remove(instance)
            books.perhaps_deleted.add(instance)
        answer = http.delete(f"/v1/instances/{instance}")
        assert answer.status_code in (202, 409), answer.text
        with books.lock:
            books.perhaps_deleted.remove(instance)
            (books.deleted if answer.status_code == 202 else books.wanted).add(instance)

    def claim(self, http: httpx.Client) -> None:
        books = self._books
        consumer = str(uuid.UUID(int=self._draw.getrandbits(128), version=4))
        provider = self._draw.choice(self._providers)
        with books.lock:
            books.perhaps_held.add(consumer)
        body = {
            "allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 128}}},
            "project_id": "direct",
            "user_id": "direct",
            "consumer_generation": None,
        }
        answer = http.put(f"/allocations/{consumer}", json=body)
        assert answer.status_code in (204, 409), answer.text
        with books.lock:
            books.perhaps_held.remove(consumer)
            if answer.status_code == 204:
                books.held[consumer] = provider

    def free(self, http: httpx.Client) -> None:
        books = self._books
        with books.lock:
            if not books.held:
                return
            consumer = self._draw.choice(sorted(books.held))
            del books.held[consumer]
            books.perhaps_held.add(consumer)
        answer = http.delete(f"/allocations/{consumer}")
        assert answer.status_code == 204, answer.text
        with books.lock:
            books.perhaps_held.remove(consumer)
            books.freed.add(consumer)


def verify(directory: Path) -> list[str]:
    findings, unread, _ = asyncio.run(verify_database(f"sqlite:///{directory / 'api.db'}"))
    return [str(each) for each in (*findings, *unread)]


def run_and_kill(server: RoostUp, clients: list[Client], seconds: float) -> None:
    """Let the clients loose on a server and kill it after a while."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def run(client: Client) -> None:
        try:
            with server.client() as http:
                client.run(http, stop)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, f"{errors[0]!r}\n{server.stderr}"


def every_instance(http: httpx.Client) -> list[dict[str, Any]]:
    """The instances of all pages."""
    page = http.get("/v1/instances").json()
    shown: list[dict[str, Any]] = page["instances"]
    while page["next"] is not None:
        page = http.get("/v1/instances", params={"marker": page["next"]}).json()
        shown += page["instances"]
    return shown


def settled(http: httpx.Client, seconds: float = 30.0) -> dict[str, Any]:
    """All instances by uuid, once nobody has work to do."""
    until = Deadline(seconds)
    while True:
        shown = every_instance(http)
        if all(each["state"] in SETTLED for each in shown):
            return {each["uuid"]: each for each in shown}
        assert not until.passed, Counter(each["state"] for each in shown)
        time.sleep(0.1)


@pytest.mark.parametrize("rounds", [8, pytest.param(40, marks=pytest.mark.nightly)])
def test_kill_at_any_moment_loses_nothing_and_claims_nothing_twice(tmp_path: Path, rounds: int) -> None:
    draw = random.Random(7)
    data = tmp_path / "data"
    books = Books()
    with RoostUp(data, UP) as server:
        server.wait_until_up()
        with server.client() as http:
            known = http.get("/resource_providers").json()["resource_providers"]
    hosts = {each["name"]: each["uuid"] for each in known}
    assert len(hosts) == 12
    clients = [Client(books, seed, sorted(hosts.values())) for seed in range(CLIENTS)]
    made = 0
    # On a slow machine little happens before each kill: then there are more of them.
    while made < rounds or (made < 80 and not books.tell_enough()):
        made += 1
        with RoostUp(data, UP) as server:
            if draw.random() < 0.2:
                time.sleep(draw.uniform(0.2, 1.2))
                server.kill()
            else:
                server.wait_until_up()
                run_and_kill(server, clients, draw.uniform(0.02, 0.8))
            assert "Traceback" not in server.stderr, server.stderr
        assert verify(data) == []

    with RoostUp(data, UP) as server:
        server.wait_until_up()
        with server.client() as http:
            shown = settled(http)
            check_instances(books, shown)
            check_claims(books, shown, hosts, http)
        status, _ = server.stop()
        assert (status, "Traceback" in server.stderr) == (0, False), server.stderr
    verified = run_roost("db", "verify", "--database", f"sqlite:///{data / 'api.db'}")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def check_instances(books: Books, shown: dict[str, Any]) -> None:
    assert books.tell_enough(), "hardly anything was asked for or deleted: this tests nothing"
    assert books.wanted <= shown.keys(), "acknowledged instances are lost"
    assert not books.deleted & shown.keys(), "deleted instances are still there"
    states = Counter(each["state"] for each in shown.values())
    assert states.keys() <= SETTLED
    for each in shown.values():
        if each["state"] == "error":
            assert each["reason"], each
        else:
            assert each["host"] and each["cell"], each


def check_claims(books: Books, shown: dict[str, Any], hosts: dict[str, str], http: httpx.Client) -> None:
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def holdings(consumer: str) -> dict[str, dict[str, int]]:
        held = http.get(f"/allocations/{consumer}").json()["allocations"]
        claims = {provider: each["resources"] for provider, each in held.items()}
        for provider, resources in claims.items():
            used[provider].update(resources)
        return claims

    for instance, each in shown.items():
        expected = {}
        if each["state"] == "active":
            expected = {hosts[each["host"]]: {"VCPU": int(each["flavor"][1:]), "MEMORY_MB": 512}}
        assert holdings(instance) == expected, each
    for instance in (books.deleted | books.perhaps_deleted) - shown.keys():
        assert holdings(instance) == {}, f"{instance} is gone and still holds something"
    for consumer, provider in books.held.items():
        assert holdings(consumer) == {provider: {"VCPU": 1, "MEMORY_MB": 128}}
    for consumer in books.freed:
        assert holdings(consumer) == {}, f"{consumer} was freed"
    for consumer in books.perhaps_held:
        holdings(consumer)
    for provider in hosts.values():
        usages = Counter(http.get(f"/resource_providers/{provider}/usages").json()["usages"])
        assert usages == used[provider], f"somebody unknown holds something of {provider}"


def is_prepared(directory: Path) -> bool:
    """Whether all databases of a replay have their tables: after a kill at its start some have none."""
    names = {"api": "api", **dict.fromkeys((CELL0, "cell1", "cell2", "cell3"), "cell")}
    return all(
        (directory / f"{name}.db").exists()
        and schema.revision(Database(f"sqlite:///{directory / name}.db")) == schema.newest
        for name, role in names.items()
        for schema in ROLES[role]
    )


def test_killed_replay_goes_on_to_the_end(tmp_path: Path) -> None:
    draw = random.Random(1)
    data = tmp_path / "data"
    options = ("replay", "demo", "--bins", "8", "--failure-rate", "0.2", "--json", "--data-dir")
    killed = 0
    while killed < 3:
        with Path(os.devnull).open("wb") as nowhere:
            process = Forked(*options, data, stdout=nowhere, stderr=nowhere)
        try:
            process.wait(draw.uniform(0.05, 1.0))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
        if is_prepared(data):
            assert verify(data) == []
    assert killed, "the replay ended before it could be killed"
    finished = run_roost(*options, data)
    assert finished.returncode == 0, finished.stderr
    summary = json.loads(finished.stdout)
    assert summary["unaccounted"] == 0
    assert summary["asked"] == summary["placed"] + summary["failed"] + summary["refused"]
    undisturbed = json.loads(run_roost(*options, tmp_path / "other").stdout)
    for figure in ("requests", "asked", "departures"):
        assert summary[figure] == undisturbed[figure]
    assert verify(data) == []
