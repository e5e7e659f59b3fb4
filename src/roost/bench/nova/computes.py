"""The rows of hosts in Nova's databases, and a process that reports as their computes do.

Arguments of the process: the URL of the cell's database, and the number of hosts. Every service reports each
`REPORT_SECONDS`, by a transaction of its own as in Nova; every compute node is written each `NODE_SECONDS`.
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


def cell_rows(cell0: str, cell0_url: str, url: str) -> Rows:
    """Return the mappings of cell0 and of the cell of all hosts."""
    cells = {cell0: ("cell0", cell0_url), CELL_UUID: (CELL, url)}
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
    """Report until the process is ended, and print a line for each second that began in time."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    services, nodes = tables.services, tables.compute_nodes
    lived = (
        sa.update(services)
        .where(services.c.id == sa.bindparam("row"))
        .values(
            report_count=services.c.report_count + 1,
            last_seen_up=sa.bindparam("now"),
            updated_at=sa.bindparam("now"),
        )
    )
    written = (
        sa.update(nodes)
        .where(nodes.c.id.between(sa.bindparam("first"), sa.bindparam("last")))
        .values(updated_at=sa.bindparam("now"))
    )
    at_once, nodes_at_once = max(1, round(hosts / REPORT_SECONDS)), max(1, round(hosts / NODE_SECONDS))
    service = node = 0
    due = time.monotonic()
    with engine.connect() as connection:
        while True:
            late = time.monotonic() - due
            print(f"{late:.3f}", flush=True)
            now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            for _ in range(at_once):
                connection.execute(lived, {"row": 1 + service % hosts, "now": now})
                service += 1
            connection.execute(
                written, {"first": 1 + node % hosts, "last": node % hosts + nodes_at_once, "now": now}
            )
            node += nodes_at_once
            due += 1.0
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    report(sys.argv[1], int(sys.argv[2]))
