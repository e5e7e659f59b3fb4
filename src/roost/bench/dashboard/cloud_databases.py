"""Racks, instances and decisions of a fleet, for the pages that show them.

The API database and a cell's database are made once for each fleet and kept: the dashboard only reads them.
Decisions are made on the copy of placement's database that a run measures.
"""

import asyncio
import math
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import sqlalchemy as sa

from roost.bench.errors import BenchError
from roost.bench.fleets import PROJECT, SEED, USER, FleetPlan, uuids
from roost.bench.requests import flavors
from roost.ledger import Ledger
from roost.model.aggregate import AVAILABILITY_ZONE, Aggregate
from roost.model.instance import ACTIVE, Instance
from roost.model.node import NodeReport
from roost.model.spec import Flavor, RequestSpec
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import HostRequest, NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.cell_mappings import CellMapping, section_of, write_cell_mappings
from roost.state.api_database.tables import SCHEMA as API_SCHEMA
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database import SCHEMA as CELL_SCHEMA
from roost.state.cell_database.rows import instance_row
from roost.state.cell_database.tables import instances
from roost.storage import Database

CELL: Final = "cell1"
HOSTS_OF_A_RACK: Final = 40
ZONES: Final = 5

CONTENT_VERSION: Final = 1
"""The version of the content of the databases; raised when it becomes another one."""

TOO_MUCH_MEMORY: Final = 100_000_000
"""MiB that no host of a fleet has."""

_AGGREGATES_AT_ONCE: Final = 100
_ROWS_AT_ONCE: Final = 10_000


class CloudDatabases(NamedTuple):
    """The URLs of an API database and of the database of the cell `CELL`."""

    api: str
    cell: str


def cloud_databases(plan: FleetPlan, folder: Path) -> CloudDatabases:
    """Return the databases of a fleet, which are made if they are missing.

    Each fleet has racks of `HOSTS_OF_A_RACK` hosts in `ZONES` zones, and an instance on each host.
    """
    revisions = f"{API_SCHEMA.newest}_{CELL_SCHEMA.newest}"
    kept = folder / f"dashboard_{plan.key}_{CONTENT_VERSION}_{revisions}"
    if not kept.exists():
        making = folder / f"making_{kept.name}"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        asyncio.run(_write(_urls(making), plan))
        making.rename(kept)
    return _urls(kept)


def _urls(folder: Path) -> CloudDatabases:
    return CloudDatabases(f"sqlite:///{folder / 'api.db'}", f"sqlite:///{folder / 'cell.db'}")


async def _write(urls: CloudDatabases, plan: FleetPlan) -> None:
    api, cell = Database(urls.api), Database(urls.cell)
    try:
        API_SCHEMA.upgrade(api)
        CELL_SCHEMA.upgrade(cell)
        await api.write(write_cell_mappings((CellMapping(CELL, section_of(CELL)),)))
        await _write_racks(api, plan.roots())
        for rows in _instance_rows(plan):
            with cell.engine.begin() as connection:
                connection.execute(sa.insert(instances), rows)
            with api.engine.begin() as connection:
                connection.execute(sa.insert(instance_mappings), [_mapping_row(each) for each in rows])
    finally:
        await cell.close()
        await api.close()


async def _write_racks(api: Database, roots: Sequence[str]) -> None:
    racks = [roots[first : first + HOSTS_OF_A_RACK] for first in range(0, len(roots), HOSTS_OF_A_RACK)]
    names = uuids(np.random.default_rng(SEED + 2), len(racks))
    store = AggregateStore(api)
    made = [
        Aggregate(
            uuid=name,
            name=f"rack-{number:04}",
            metadata={"rack": f"r{number:04}", AVAILABILITY_ZONE: f"zone-{number * ZONES // len(racks)}"},
            members=frozenset(members),
        )
        for number, (name, members) in enumerate(zip(names, racks, strict=True))
    ]
    for first in range(0, len(made), _AGGREGATES_AT_ONCE):
        await store.create(made[first : first + _AGGREGATES_AT_ONCE], judge=lambda _: None)


def _instance_rows(plan: FleetPlan) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of the consumers of a plan as instances: one on each host."""
    at = time.time()
    for batch in plan.host_batches():
        roots = batch.providers[:: len(plan.tree)]
        rows: list[dict[str, Any]] = [
            instance_row(
                Instance(
                    uuid=consumer,
                    request_id=f"req-{consumer}",
                    run=consumer,
                    project_id=PROJECT,
                    user_id=USER,
                    flavor="bench",
                    state=ACTIVE,
                    host=plan.host_name(batch.first + number),
                    node=root,
                    attempt=1,
                ),
                at,
            )
            for number, (consumer, root) in enumerate(zip(batch.consumers, roots, strict=True))
        ]
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            yield rows[first : first + _ROWS_AT_ONCE]


def _mapping_row(instance: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance_uuid": instance["uuid"],
        "cell": CELL,
        "epoch": 1,
        "request_id": instance["request_id"],
        "project_id": instance["project_id"],
        "user_id": instance["user_id"],
        "deleted": False,
        "accepted_at": instance["changed_at"],
        "name": f"instance-{instance['host']}",
    }


async def write_decisions(database: str, records: str, plan: FleetPlan, count: int) -> str:
    """Make ``count`` decisions and a refused one on a database of placement, with records of all.

    Returns the run that was refused.

    Raises:
        BenchError: A request was decided in another way.
    """
    placement = Database(database)
    queue = RecordQueue(await open_sql_records(records, Retention()))
    ledger = await Ledger.open(placement)
    try:
        options = SchedulerOptions(explain_seconds=60.0)
        scheduler = Scheduler(LocalGateway(ledger, HostPools(_node_table(plan), options)), queue)
        wanted = flavors("repeated")
        for _ in range(count):
            spec = RequestSpec(project_id=PROJECT, user_id=USER, flavor=next(wanted))
            await scheduler.select_destinations(HostRequest.new(spec, 1, 2))
        run = str(uuid.uuid4())
        spec = RequestSpec(project_id=PROJECT, user_id=USER, flavor=Flavor("huge", 1, TOO_MUCH_MEMORY))
        try:
            await scheduler.select_destinations(HostRequest(spec, (str(uuid.uuid4()),), run=run))
        except NoValidHost:
            return run
        raise BenchError(f"{TOO_MUCH_MEMORY:,} MiB were found on a host")
    except NoValidHost as error:
        raise BenchError(f"{plan} has no room for {count} decisions: {error}") from error
    finally:
        await queue.flush()
        await queue.close()
        await ledger.close()
        await placement.close()


def _node_table(plan: FleetPlan) -> NodeTable:
    """Return the hosts of a plan, which are always up, as those are that placement alone knows."""
    table = NodeTable(
        NodeReport(host=plan.host_name(host), node=node, cell="", last_seen=math.inf)
        for host, node in enumerate(plan.roots())
    )
    while table.decode(plan.hosts):
        pass
    return table
