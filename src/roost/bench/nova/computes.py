"""The rows of hosts in Nova's databases, and a process that reports as their computes do.

Arguments of the process: the URL of the cell's database, and the number of hosts. Every service reports each
`REPORT_SECONDS`; every compute node is written each `NODE_SECONDS`. In Nova each report is a transaction of
its own. Here those of a tick are one, because the work of the writers is not what is measured.
"""

import datetime
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from roost.bench.fleets import DISABLED_EVERY, FleetPlan, flat
from roost.nova.database import tables

CELL: Final = "cell1"
CELL_UUID: Final = str(uuid.uuid5(uuid.NAMESPACE_DNS, CELL))

REPORT_SECONDS: Final = 10.0
NODE_SECONDS: Final = 60.0
TICK_SECONDS: Final = 0.1

VERSION: Final = 73
"""The service version of computes, that of Nova 34.0."""


TRAITS: Final = ("COMPUTE_NODE", "OWNER_NOVA")
"""Traits that each compute of Nova gives its provider, and that Nova's scheduler asks for."""


def computes(hosts: int) -> FleetPlan:
    """Return the plan of flat hosts that belong to computes of Nova."""
    plan = flat(hosts)
    [root] = plan.tree
    return replace(plan, name="computes", tree=(replace(root, traits=(*root.traits, *TRAITS)),))


Rows = Mapping[sa.Table, list[dict[str, Any]]]
"""Rows by their table."""


def cell_rows(cell0: str, databases: Mapping[str, str]) -> Rows:
    """Return the mappings of cell0, whose uuid is given, and of the cell of all hosts.

    Each service fills in its own account of ``[database] connection``.
    """
    template = "{scheme}://{username}@{hostname}:{port}/"
    cells = {
        cell0: ("cell0", template + databases["cell0"]),
        CELL_UUID: (CELL, template + databases[CELL]),
    }
    mapped = [
        {"uuid": key, "name": name, "transport_url": "fake:/", "database_connection": at, "disabled": False}
        for key, (name, at) in cells.items()
    ]
    return {tables.cell_mappings: mapped}


def host_mappings(plan: FleetPlan, cell: int) -> Rows:
    """Return the mappings of the hosts of a plan to a cell."""
    return {
        tables.host_mappings: [
            {"host": plan.host_name(number), "cell_id": cell} for number in range(plan.hosts)
        ]
    }


def host_rows(plan: FleetPlan, columns: Mapping[str, Any]) -> Rows:
    """Return the services and compute nodes of the hosts of a plan, with ``columns`` in each node.

    Placement and the rows agree on what is used, and on the hosts that are disabled.
    """
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
    stamps = {"created_at": now, "updated_at": now, "deleted": 0}
    [root] = [part for part in plan.tree if part.parent is None]
    sizes = {name: each.total for name, each in root.inventories.items()}
    services, nodes = [], []
    for batch in plan.host_batches():
        roots = batch.providers[:: len(plan.tree)]
        for number, (node, used) in enumerate(zip(roots, batch.used.tolist(), strict=True), batch.first):
            host = plan.host_name(number)
            usage = {name: used * root.usage.get(name, 0) for name in sizes}
            services.append(
                {
                    **stamps,
                    "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, host)),
                    "host": host,
                    "binary": "nova-compute",
                    "topic": "compute",
                    "report_count": 1,
                    "disabled": number % DISABLED_EVERY == DISABLED_EVERY - 1,
                    "forced_down": False,
                    "last_seen_up": now,
                    "version": VERSION,
                }
            )
            nodes.append(
                {
                    **stamps,
                    **columns,
                    "uuid": node,
                    "host": host,
                    "hypervisor_hostname": host,
                    "vcpus": sizes["VCPU"],
                    "memory_mb": sizes["MEMORY_MB"],
                    "local_gb": sizes["DISK_GB"],
                    "vcpus_used": usage["VCPU"],
                    "memory_mb_used": usage["MEMORY_MB"],
                    "local_gb_used": usage["DISK_GB"],
                    "free_ram_mb": sizes["MEMORY_MB"] - usage["MEMORY_MB"],
                    "free_disk_gb": sizes["DISK_GB"] - usage["DISK_GB"],
                    "disk_available_least": sizes["DISK_GB"] - usage["DISK_GB"],
                    "host_ip": f"10.0.{number // 250}.{number % 250}",
                    "cpu_allocation_ratio": 4.0,
                    "ram_allocation_ratio": 1.0,
                    "disk_allocation_ratio": 1.0,
                }
            )
    return {tables.services: services, tables.compute_nodes: nodes}


def report(url: str, hosts: int) -> None:
    """Report until the process is ended. One that comes too late leaves out no report."""
    services, nodes = tables.services, tables.compute_nodes
    now: sa.BindParameter[datetime.datetime] = sa.bindparam("now")
    counted = {"report_count": services.c.report_count + 1, "last_seen_up": now, "updated_at": now}
    lived = sa.update(services).where(_among(services)).values(counted)
    written = sa.update(nodes).where(_among(nodes)).values(updated_at=now)
    turns = [_Turn(lived, hosts, REPORT_SECONDS), _Turn(written, hosts, NODE_SECONDS)]
    due = time.monotonic()
    with sa.create_engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
        while True:
            moment = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            for turn in turns:
                first, last = turn.next()
                connection.execute(turn.statement, {"first": first, "last": last, "now": moment})
            due += TICK_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))


class _Turn:
    """The rows that are written one after another, so that each is written once in ``seconds``."""

    def __init__(self, statement: sa.Update, hosts: int, seconds: float) -> None:
        self.statement = statement
        self._hosts = hosts
        self._each = hosts * TICK_SECONDS / seconds
        self._at = 0.0

    def next(self) -> tuple[int, int]:
        """Return the first and the last id of the rows of this tick; the last is less if there are none."""
        first = int(self._at)
        self._at = min(self._at + self._each, self._hosts)
        last = int(self._at)
        if self._at == self._hosts:
            self._at = 0.0
        return 1 + first, last


def _among(table: sa.Table) -> sa.ColumnElement[bool]:
    return table.c.id.between(sa.bindparam("first"), sa.bindparam("last"))


if __name__ == "__main__":
    report(sys.argv[1], int(sys.argv[2]))
