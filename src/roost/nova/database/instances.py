"""The instances on the hosts of a cell, and the places of single instances."""

import datetime
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import instance_system_metadata, instances
from roost.storage import in_batches, transaction

IMAGE: Final = "image_"
"""The prefix of the keys of ``instance_system_metadata`` that are properties of the instance's image."""

NOT_PROPERTIES: Final = frozenset(
    ("base_image_ref", "container_format", "disk_format", "min_disk", "min_ram")
)
"""Names with this prefix that are no properties. Source: ``nova.utils`` and ``nova.compute.api``."""


class InstanceRow(NamedTuple):
    """An instance on a host. ``nodename`` is the name of its node; ``id`` that of its row."""

    uuid: str
    id: int
    host: str
    nodename: str
    project_id: str
    image: str | None


class HostMark(NamedTuple):
    """The number of a host's instances and the sum of their ids: another one if any has come or gone."""

    number: int
    ids: int


class InstanceChange(NamedTuple):
    """A changed instance on a host. ``at``: when, by the clock of its writer; compared for equality only."""

    uuid: str
    host: str
    at: datetime.datetime


class NovaPlace(NamedTuple):
    """The place of an instance: None if it is on no host. ``state`` and ``task`` are Nova's ``vm_state`` and
    ``task_state``."""

    host: str | None
    nodename: str | None
    state: str | None
    task: str | None


@transaction
def read_marks(connection: Connection) -> dict[str, HostMark]:
    """Return the mark of each host with instances. The database reads nothing but an index."""
    return {host: HostMark(count, int(ids)) for host, count, ids in connection.execute(_MARKS)}


@transaction
def read_newest(connection: Connection) -> datetime.datetime | None:
    """Return when the instance that was changed last was changed, by the clock of its writer."""
    newest: datetime.datetime | None = connection.execute(_NEWEST).scalar()
    return newest


@transaction
def read_changes(connection: Connection, since: datetime.datetime) -> list[InstanceChange]:
    """Return the changes of instances since a time by the clocks of their writers, as an index has them."""
    query = _CHANGES.where(instances.c.updated_at >= since)
    return [InstanceChange(*row) for row in connection.execute(query)]


@transaction
def read_instances(connection: Connection, hosts: Collection[str]) -> list[InstanceRow]:
    """Return the instances of some hosts."""
    return [
        InstanceRow(uuid, id_, host, node or "", project or "", image or None)
        for some in in_batches(hosts)
        for uuid, id_, host, node, project, image in connection.execute(
            _LISTED.where(instances.c.host.in_(some))
        )
    ]


@transaction
def read_image_properties(connection: Connection, uuids: Collection[str]) -> Mapping[str, dict[str, str]]:
    """Return the properties of the images of some instances."""
    found: dict[str, dict[str, str]] = {}
    for some in in_batches(uuids):
        query = _PROPERTIES.where(instance_system_metadata.c.instance_uuid.in_(some))
        for uuid, key, value in connection.execute(query):
            name = key.removeprefix(IMAGE)
            if name not in NOT_PROPERTIES and value is not None:
                found.setdefault(uuid, {})[name] = value
    return found


@transaction
def read_places(connection: Connection, uuids: Collection[str]) -> dict[str, NovaPlace]:
    """Return the places of those of some instances that the cell has."""
    return {
        uuid: NovaPlace(host, node, state, task)
        for some in in_batches(uuids)
        for uuid, host, node, state, task in connection.execute(_PLACES.where(instances.c.uuid.in_(some)))
    }


_MARKS = (
    sa.select(instances.c.host, sa.func.count(), sa.func.sum(instances.c.id))
    .where(instances.c.deleted == 0, instances.c.host.is_not(None))
    .group_by(instances.c.host)
)
_NEWEST = sa.select(sa.func.max(instances.c.updated_at))
_CHANGES = sa.select(instances.c.uuid, instances.c.host, instances.c.updated_at).where(
    instances.c.host.is_not(None)
)
_LISTED = sa.select(
    instances.c.uuid,
    instances.c.id,
    instances.c.host,
    instances.c.node,
    instances.c.project_id,
    instances.c.image_ref,
).where(instances.c.deleted == 0)
_PROPERTIES = sa.select(
    instance_system_metadata.c.instance_uuid,
    instance_system_metadata.c.key,
    instance_system_metadata.c.value,
).where(
    instance_system_metadata.c.deleted == 0,
    instance_system_metadata.c.key.startswith(IMAGE, autoescape=True),
)
_PLACES = sa.select(
    instances.c.uuid, instances.c.host, instances.c.node, instances.c.vm_state, instances.c.task_state
).where(instances.c.deleted == 0)
