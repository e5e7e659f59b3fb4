"""Benchmark of reshapes: hosts become trees, some at a time, while instances run and others are built."""

import statistics
import threading
import time
from pathlib import Path
from typing import Any, Final

import click
import httpx
import sqlalchemy as sa

from roost.bench.cloud import SETTLE_SECONDS, Cloud, cloud_folder
from roost.bench.errors import BenchError
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.options import count_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.ledger.tables import allocations, commits, inventories, resource_classes, resource_providers

BEFORE: Final = "vgpu-flat"
AFTER: Final = "vgpu-libvirt"
"""The profile of hosts after the reshape: virtual GPUs are inventory of a card, a child provider."""

FLAVOR: Final = {"name": "gpu", "vcpus": 1, "memory_mb": 512, "extra_specs": {"resources:VGPU": "1"}}
AT_ONCE: Final = 20
LOOK_SECONDS: Final = 0.05

TABLE: Final = BenchTable(
    "reshape",
    "Hosts reshaped while requests are served",
    (
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
    ),
)
"""Each row is one cloud.

``seconds``: from the first restart of agents until every host is a tree. ``p50_s`` and ``slowest_s``:
times of a restart of ``together`` hosts. ``commits``: commits of placement meanwhile; at most
``by_requests`` of them are due to claims and deletions of the ``built`` instances. ``refused``: instances
for which no host was found. ``p50_ms`` and ``slowest_ms``: times until an instance runs.
"""


def measure(folder: Path, hosts: int, together: int, instances: int) -> BenchReport:
    """Start a cloud with virtual GPUs at the roots of its hosts, fill it, and move them to cards.

    ``together``: hosts whose agents are one process and restarted at once. ``instances``: instances with a
    GPU each.

    Raises:
        BenchError: A process does not start, an instance is lost or not built, or the databases differ.
    """
    announce(f"reshape: {hosts:,} hosts")
    own = cloud_folder(folder, "reshape")
    with Cloud(own, hosts, 1, tls=False, together=together, profile=BEFORE) as cloud:
        row = _row(cloud, hosts, together, instances)
    return TABLE.report([row], {"database": "postgresql, durable", "profiles": f"{BEFORE} to {AFTER}"})


def _row(cloud: Cloud, hosts: int, together: int, instances: int) -> dict[str, Any]:
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
    return {
        "hosts": hosts,
        "together": together,
        "instances": len(there),
        "seconds": seconds,
        "hosts_per_second": hosts / seconds,
        "p50_s": statistics.median(took),
        "slowest_s": max(took),
        "commits": after - before,
        "by_requests": 2 * len(load.took) + load.refused,
        "built": len(load.took),
        "refused": load.refused,
        "p50_ms": statistics.median(load.took) * 1000,
        "slowest_ms": max(load.took) * 1000,
    }


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
                [(uuid, state)] = self._cloud.build(FLAVOR, 1, LOOK_SECONDS).items()
                if state == "active":
                    self.took.append(time.monotonic() - began)
                else:
                    self.refused += 1
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
        states = cloud.build(FLAVOR, count, LOOK_SECONDS)
        built |= {uuid for uuid, state in states.items() if state == "active"}
        for uuid, state in states.items():
            if state != "active":
                # The scheduler searches for new hosts periodically.
                cloud.request("DELETE", f"/v1/instances/{uuid}")
    return built


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


@click.command(epilog="Example: roost bench reshape --hosts 1000 --together 50")
@count_option("--hosts", 1_000, "Hosts.")
@count_option("--together", 50, "Hosts restarted at a time.")
@count_option("--instances", 2_000, "Instances on them.")
@reported(database=False)
def reshape(setting: ComparedSetting, hosts: int, together: int, instances: int) -> BenchReport:
    """Measure reshapes: hosts become trees, some at a time, while their instances run and others are built.

    A conductor, a cell's conductor and agents are processes on a private PostgreSQL server with all syncs on.

    Exit status: 0 done, 2 could not run, or something was lost.
    """
    return measure(setting.folder, hosts, together, instances)
