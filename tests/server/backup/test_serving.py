"""A backup of a database that serves: one moment of its history, and every commit up to it."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.ledger.tables import commits
from support.databases import Place, Servers
from support.ledgers import findings_in, upgrade
from support.serving import Serving, roost

HOSTS = [f"00000000-0000-0000-0000-{number:012}" for number in range(4)]
CLIENTS = 3


@contextmanager
def claiming(server: Serving) -> Iterator[list[str]]:
    """Let some clients claim without end; the list grows with each claim that was acknowledged."""
    claimed: list[str] = []
    failed: list[str] = []
    stopped = threading.Event()

    def run(client: int) -> None:
        for number in itertools.count():
            if stopped.is_set():
                return
            consumer = f"{client:08}-0000-0000-0000-{number:012}"
            body = {
                "allocations": {HOSTS[number % len(HOSTS)]: {"resources": {"VCPU": 1}}},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            answer = server.ask("PUT", f"/allocations/{consumer}", body)
            if answer.status_code != 204:
                failed.append(answer.text)
                return
            claimed.append(consumer)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield claimed
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert failed == []


def wait_for(claimed: list[str], count: int) -> None:
    """Wait until so many claims were acknowledged."""
    reached = threading.Event()
    for _ in range(12_000):
        if len(claimed) >= count:
            return
        reached.wait(0.01)
    raise AssertionError(f"only {len(claimed)} claims")


def history(url: str) -> list[tuple[int, str, str]]:
    """All commits of a database: number, token and changes."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    query = sa.select(commits.c.seq, commits.c.writer, commits.c.changes).order_by(commits.c.seq)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query)]


def identity(url: str) -> tuple[str, int]:
    """The uuid and the incarnation of a database."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        row = connection.exec_driver_sql("SELECT uuid, incarnation FROM database_identity").one()
    return row.uuid, row.incarnation


def create_hosts(server: Serving) -> None:
    """Make the hosts that clients claim from."""
    for number, uuid in enumerate(HOSTS):
        assert server.ask("POST", "/resource_providers", {"name": f"h{number}", "uuid": uuid}).is_success
        inventory = {"inventories": {"VCPU": {"total": 10**6}}, "resource_provider_generation": 0}
        assert server.ask("PUT", f"/resource_providers/{uuid}/inventories", inventory).is_success


@pytest.mark.parametrize(
    "kind", ["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.nightly), "galera"]
)
def test_a_backup_under_load_is_a_prefix_of_the_history(kind: str, servers: Servers, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with servers.place(kind, tmp_path) as place, servers.place(kind, target) as empty:
        upgrade(place.url)
        server = Serving(place.url, tmp_path / "log")
        try:
            create_hosts(server)
            with claiming(server) as claimed:
                wait_for(claimed, 30)
                acknowledged = set(claimed)
                made = roost("db", "backup", "--database", place.url, str(tmp_path / "backup"), "--json")
                assert made.returncode == 0, made.stderr
                wait_for(claimed, len(claimed) + 10)
        finally:
            server.end()
        [database] = json.loads(made.stdout)["manifest"]["databases"]
        before = identity(place.url)
        assert (database["identity"], database["incarnation"]) == before

        done = roost("db", "restore", str(tmp_path / "backup"), "--database", empty.url, "--json")
        assert done.returncode == 0, done.stderr + done.stdout
        restored, source = history(empty.url), history(place.url)
        assert len(restored) < len(source)
        assert restored == source[: len(restored)]
        if kind in ("sqlite", "postgresql"):
            assert restored[-1][0] == database["version"]
        else:
            assert restored[-1][0] >= database["version"]
        assert findings_in(Place(kind, (empty.url,))) == []
        uuid, incarnation = identity(empty.url)
        assert (uuid, incarnation > before[1]) == (before[0], True)

        # Every claim that was acknowledged before the backup began is in it, and it serves.
        server = Serving(empty.url, tmp_path / "log")
        try:
            for consumer in acknowledged:
                assert server.ask("GET", f"/allocations/{consumer}").json()["allocations"]
            page = server.ask("GET", f"/v1/changes?after=1&history={before[0]}.{before[1]}")
            assert page.status_code == 410
            assert server.ask("GET", "/v1/changes?after=1").json()["history"] == f"{uuid}.{incarnation}"
        finally:
            server.end()
