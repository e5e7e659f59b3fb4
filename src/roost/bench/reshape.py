"""Benchmark of reshapes: hosts become trees, some at a time, while instances run and others are built."""

import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import sqlalchemy as sa

from roost.bench.agents import SHAPE
from roost.bench.cloud import Cloud
from roost.bench.errors import BenchError
from roost.bench.progress import announce
from roost.bench.report import BenchReport, Column, report
from roost.ledger.tables import allocations, commits, inventories, resource_classes, resource_providers

BEFORE: Final = "vgpu-flat"
AFTER: Final = "vgpu-libvirt"
"""The profile of hosts after the reshape: virtual GPUs are inventory of a card, a child provider."""

FLAVOR: Final = {"name": "gpu", "vcpus": 1, "memory_mb": 512, "extra_specs": {"resources:VGPU": "1"}}
AT_ONCE: Final = 20
SETTLE_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 0.05

COLUMNS: Final = (
    Column("hosts", "hosts", ","),
    Column("at a time", "together", ","),
    Column("instances on them", "instances", ","),
    Column("reshaped in s", "seconds", ",.1f"),
    Column("hosts/s", "hosts_per_second", ",.1f"),
    Column("a restart p50 s", "p50_s", ",.2f"),
    Column("slowest s", "slowest_s", ",.2f"),
    Column("commits", "commits", ","),
    Column("of these by requests", "by_requests", ","),
    Column("instances built meanwhile", "built", ","),
    Column("refused", "refused", ","),
    Column("accepted to running p50 ms", "p50_ms", ",.0f"),
    Column("slowest ms", "slowest_ms", ",.0f"),
)


class ReshapeRow(msgspec.Struct, frozen=True):
    """The result of one cloud.

    ``seconds``: from the first restart of agents until every host is a tree. ``p50_s`` and ``slowest_s``:
    times of a restart of ``together`` hosts. ``commits``: commits of placement meanwhile; at most
    ``by_requests`` of them are due to claims and deletions of the ``built`` instances. ``refused``: instances
    for which no host was found. ``p50_ms`` and ``slowest_ms``: times until an instance runs.
    """

    hosts: int
    together: int
    instances: int
    seconds: float
    hosts_per_second: float
    p50_s: float
    slowest_s: float
    commits: int
    by_requests: int
    built: int
    refused: int
    p50_ms: float
    slowest_ms: float


def measure(folder: Path, hosts: int, together: int, instances: int) -> BenchReport:
    """Start a cloud with virtual GPUs at the roots of its hosts, fill it, and move them to cards.

    ``together``: hosts whose agents are one process and restarted at once. ``instances``: instances with a
    GPU each.

    Raises:
        BenchError: A process does not start, an instance is lost or not built, or the databases differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    announce(f"reshape: {hosts:,} hosts")
    own = Path(tempfile.mkdtemp(prefix="reshape-", dir=folder))
    own.chmod(0o755)  # for PostgreSQL's account
    with Cloud(own, hosts, 1, SHAPE, tls=False, together=together, profile=BEFORE) as cloud:
        row = _row(cloud, hosts, together, instances)
    settings = {"database": "postgresql, durable", "profiles": f"{BEFORE} to {AFTER}"}
    return report("reshape", "Hosts reshaped while requests are served", COLUMNS, [row], settings)


def _row(cloud: Cloud, hosts: int, together: int, instances: int) -> ReshapeRow:
    there = _fill(cloud, hosts, instances)
    before = _moment(cloud)
    load = _Load(cloud)
    began = time.monotonic()
    took = []
    for number in range(len(cloud.agents)):
        announce(f"reshape: {number * together:,} of {hosts:,} hosts")
        restarted = time.monotonic()
        cloud.restart_agents(number, AFTER)
        took.append(time.monotonic() - restarted)
    until = time.monotonic() + SETTLE_SECONDS
    while _flat_hosts(cloud):
        if time.monotonic() > until:
            raise BenchError(f"{_flat_hosts(cloud)} hosts are not reshaped: see {cloud.folder}")
        time.sleep(LOOK_SECONDS)
    seconds = time.monotonic() - began
    after = _moment(cloud)
    load.stop()
    _check(cloud, there, load)
    return ReshapeRow(
        hosts=hosts,
        together=together,
        instances=len(there),
        seconds=seconds,
        hosts_per_second=hosts / seconds,
        p50_s=statistics.median(took),
        slowest_s=max(took),
        commits=after - before,
        by_requests=2 * len(load.took) + load.refused,
        built=len(load.took),
        refused=load.refused,
        p50_ms=statistics.median(load.took) * 1000,
        slowest_ms=max(load.took) * 1000,
    )


class _Load:
    """Builds instances and deletes them, one after the other, in a thread until `stop`."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._over = threading.Event()
        self.took: list[float] = []
        self.refused = 0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """End the load. Raises `BenchError` if it failed or did nothing."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise BenchError(f"a request failed: {self._error}") from self._error
        if not self.took:
            raise BenchError("no instance was built meanwhile")

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                began = time.monotonic()
                asked = _ask(self._cloud, 1)
                [state] = _settled(self._cloud, asked, 1).values()
                if state == "active":
                    self.took.append(time.monotonic() - began)
                else:
                    self.refused += 1
                for uuid in asked["instances"]:
                    self._cloud.request("DELETE", f"/v1/instances/{uuid}")
        except (BenchError, httpx.HTTPError) as error:
            self._error = error


def _fill(cloud: Cloud, hosts: int, instances: int) -> set[str]:
    """Build instances once the scheduler has all hosts, and return their uuids."""
    until = time.monotonic() + SETTLE_SECONDS
    built: set[str] = set()
    while len(built) < instances:
        if time.monotonic() > until:
            raise BenchError(f"of {instances} instances {len(built)} are built")
        count = min(AT_ONCE, instances - len(built))
        states = _settled(cloud, _ask(cloud, count), count)
        built |= {uuid for uuid, state in states.items() if state == "active"}
        for uuid, state in states.items():
            if state != "active":
                # The scheduler searches for new hosts periodically.
                cloud.request("DELETE", f"/v1/instances/{uuid}")
    return built


def _ask(cloud: Cloud, count: int) -> Mapping[str, Any]:
    asked: Mapping[str, Any] = cloud.request("POST", "/v1/instances", {"flavor": FLAVOR, "count": count})
    return asked


def _settled(cloud: Cloud, asked: Mapping[str, Any], count: int) -> dict[str, str]:
    """Return the states of the instances of a request once all are active or in error."""
    until = time.monotonic() + SETTLE_SECONDS
    path = f"/v1/instances?request_id={asked['request_id']}&limit={count}"
    while time.monotonic() < until:
        states = {each["uuid"]: each["state"] for each in cloud.request("GET", path)["instances"]}
        if len(states) == count and set(states.values()) <= {"active", "error"}:
            return states
        time.sleep(LOOK_SECONDS)
    raise BenchError(f"{count} instances are not built after {SETTLE_SECONDS:g} s")


_OF_ROOTS = (resource_classes.c.name == "VGPU", resource_providers.c.parent_id.is_(None))


def _of_roots(table: sa.Table) -> sa.Select[Any]:
    """Return a query that counts the rows of a table with virtual GPUs of root providers."""
    joined = table.join(resource_providers, resource_providers.c.id == table.c.provider_id).join(
        resource_classes, resource_classes.c.id == table.c.resource_class_id
    )
    return sa.select(sa.func.count()).select_from(joined).where(*_OF_ROOTS)


_COMMITS = sa.select(sa.func.max(commits.c.seq))
_FLAT = _of_roots(inventories)
_AT_ROOTS = _of_roots(allocations)


def _moment(cloud: Cloud) -> int:
    return _number(cloud, _COMMITS)


def _flat_hosts(cloud: Cloud) -> int:
    return _number(cloud, _FLAT)


def _number(cloud: Cloud, query: sa.Select[Any]) -> int:
    engine = sa.create_engine(cloud.urls["api"], poolclass=sa.NullPool)
    with engine.connect() as connection:
        return int(connection.execute(query).scalar_one() or 0)


def _check(cloud: Cloud, there: set[str], load: _Load) -> None:
    """Check that no instance is lost and all databases agree. Raises `BenchError`."""
    marker, states = "", dict[str, str]()
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        page = cloud.request("GET", f"/v1/instances?limit=1000{marker}")
        states |= {each["uuid"]: each["state"] for each in page["instances"]}
        if page["next"] is not None:
            marker = f"&marker={page['next']}"
        elif set(states) <= there or time.monotonic() > until:
            break
        else:
            # The last deletions may still be under way.
            marker, states = "", {}
            time.sleep(LOOK_SECONDS)
    lost = {uuid: states.get(uuid, "gone") for uuid in there if states.get(uuid) != "active"}
    if lost:
        raise BenchError(f"instances are not active any more: {lost}")
    if left := _number(cloud, _AT_ROOTS):
        raise BenchError(f"{left} virtual GPUs are still claimed of roots")
    cloud.verify()
