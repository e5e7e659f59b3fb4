"""The traces that boots and moves leave in the databases of a `NovaCloud`."""

import datetime
import uuid
from typing import Any

import sqlalchemy as sa

from roost.nova.database import tables
from support.nova_clouds import EPOCH, NovaCloud, cell_uuid


def instance_uuid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def requested(cloud: NovaCloud, name: str) -> str:
    """The API has accepted a boot."""
    found = instance_uuid(name)
    cloud.write(
        "api",
        sa.insert(tables.build_requests).values(instance_uuid=found, project_id="p"),
        sa.insert(tables.instance_mappings).values(instance_uuid=found, project_id="p"),
    )
    return found


def withdrawn(cloud: NovaCloud, name: str) -> None:
    """A user has deleted an instance that was in no cell yet."""
    requests = tables.build_requests
    cloud.write("api", sa.delete(requests).where(requests.c.instance_uuid == instance_uuid(name)))


def mapped(cloud: NovaCloud, name: str, cell: str) -> str:
    """The instance is in a cell, and its build request is gone."""
    found = instance_uuid(name)
    mappings, requests, cells = tables.instance_mappings, tables.build_requests, tables.cell_mappings
    number = sa.select(cells.c.id).where(cells.c.uuid == cell_uuid(cell)).scalar_subquery()
    mine = mappings.c.instance_uuid == found
    cloud.write(
        "api",
        sa.update(mappings).where(mine).values(cell_id=number),
        sa.delete(requests).where(requests.c.instance_uuid == found),
    )
    return found


def buried(cloud: NovaCloud, name: str, **values: Any) -> str:
    """The conductor has given up a boot."""
    cloud.instance("cell0", name, None, vm_state="error", **values)
    return mapped(cloud, name, "cell0")


def placed(cloud: NovaCloud, name: str, cell: str, host: str | None, **values: Any) -> str:
    """The conductor has put an instance into a cell."""
    cloud.instance(cell, name, host, **values)
    return mapped(cloud, name, cell)


def migration(cloud: NovaCloud, cell: str, name: str, source: str, status: str, **values: Any) -> None:
    """A migration of an instance; an evacuation unless it is another one. Replaces the last one."""
    table = tables.migrations
    row = {
        "uuid": str(uuid.uuid4()),
        "instance_uuid": instance_uuid(name),
        "source_compute": source,
        "source_node": source,
        "status": status,
        "migration_type": "evacuation",
        "created_at": EPOCH,
        **values,
    }
    mine = sa.delete(table).where(table.c.instance_uuid == row["instance_uuid"])
    cloud.write(cell, mine, sa.insert(table).values(**row))


def action(
    cloud: NovaCloud,
    cell: str,
    name: str,
    kind: str,
    *events: tuple[str, str | None, str | None],
    request: str = "req-1",
    at: float = 0.0,
    details: str | None = None,
) -> None:
    """An action on an instance, with events: name, host and result of each."""
    found, start = instance_uuid(name), EPOCH + datetime.timedelta(seconds=at)
    row = {"action": kind, "instance_uuid": found, "request_id": request, "start_time": start}
    with cloud.engines[cell].begin() as connection:
        insert = sa.insert(tables.instance_actions).values(**row)
        number = connection.execute(insert).inserted_primary_key[0]
        for event, host, result in events:
            values = {"action_id": number, "event": event, "host": host, "result": result}
            values["details"] = details if result == "Error" else None
            connection.execute(sa.insert(tables.instance_actions_events).values(**values))


def fault(cloud: NovaCloud, cell: str, name: str, host: str | None, text: str, at: float = 0.0) -> None:
    moment = EPOCH + datetime.timedelta(seconds=at)
    row = {"instance_uuid": instance_uuid(name), "code": 500, "host": host, "message": text}
    cloud.write(cell, sa.insert(tables.instance_faults).values(**row, created_at=moment))
