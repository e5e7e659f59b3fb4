"""The consumers of instances: their own uuids, except for those that were unshelved.

Agents and drivers know instances alone, and placement consumers alone. So the endpoint exchanges the names in
what it passes between them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.node import NodeReport
from roost.state.cell_database.tables import instances
from roost.storage import in_batches, one_of, short_read

V = TypeVar("V")


@short_read
def instances_of_consumers(connection: Connection, consumers: tuple[str, ...]) -> dict[str, str]:
    """Return the instances of consumers, by consumer; those that are their own consumers are left out."""
    return {
        row.consumer: row.uuid
        for some in in_batches(consumers)
        for row in connection.execute(_OF_CONSUMERS, {"uuids": some})
    }


@short_read
def consumers_of_instances(connection: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Return the consumers of instances, by instance; those that are their own consumers are left out."""
    return {
        row.uuid: row.consumer
        for some in in_batches(uuids)
        for row in connection.execute(_OF_INSTANCES, {"uuids": some})
    }


_PAIRS = sa.select(instances.c.uuid, instances.c.consumer)
_OF_CONSUMERS = _PAIRS.where(one_of(instances.c.consumer, "uuids"))
_OF_INSTANCES = _PAIRS.where(one_of(instances.c.uuid, "uuids"), instances.c.consumer.is_not(None))


def renamed(values: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
    """Return values by other names. ``names``: the new ones by the old; others stay."""
    return {names.get(name, name): value for name, value in values.items()}


def by_consumers(connection: Connection, reports: Sequence[NodeReport]) -> tuple[NodeReport, ...]:
    """Return reports of agents with the consumers of the guests that they list, as schedulers count these."""
    guests = {guest for each in reports for guest in each.instances}
    names = consumers_of_instances(sorted(guests))(connection) if guests else {}
    if not names:
        return tuple(reports)
    return tuple(msgspec.structs.replace(each, instances=renamed(each.instances, names)) for each in reports)
