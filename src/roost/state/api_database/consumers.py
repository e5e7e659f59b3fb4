"""The consumers that were drawn to unshelve instances.

An instance is its own consumer until it is shelved, and another one from each unshelving on, which its cell
knows. They are stored here before the cell hears of the unshelving, and until nothing of the instance is
left. So whoever finds a consumer in placement knows its instance, also while the cell is away. One whose
unshelving the cell refused is here too, and never holds anything.
"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.tables import instance_consumers
from roost.storage import in_batches, insert_missing, one_of, short_read, transaction


@transaction
def add_consumer(connection: Connection, consumer: str, instance: str) -> None:
    """Store a consumer that is drawn for an instance. A repeated call changes nothing."""
    row = {"consumer": consumer, "instance_uuid": instance}
    if instance_of_consumers(connection, [consumer]).get(consumer) != instance:
        insert_missing(connection, sa.insert(instance_consumers), [row])


@short_read
def find_consumers(connection: Connection, uuids: tuple[str, ...]) -> dict[str, str]:
    """Return the instances of drawn consumers: of those among ``uuids``, and all of instances among them."""
    found = instance_of_consumers(connection, uuids)
    return found | consumers_of(connection, {*uuids, *found.values()})


def instance_of_consumers(connection: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Return the instances of drawn consumers, by consumer. Other uuids are left out."""
    return {
        row.consumer: row.instance_uuid
        for some in in_batches(uuids)
        for row in connection.execute(_NAMED, {"uuids": some})
    }


def consumers_of(connection: Connection, instances: Collection[str]) -> dict[str, str]:
    """Return the consumers that were drawn for some instances, each with its instance."""
    return {
        row.consumer: row.instance_uuid
        for some in in_batches(instances)
        for row in connection.execute(_DRAWN, {"uuids": some})
    }


_NAMED = sa.select(instance_consumers).where(one_of(instance_consumers.c.consumer, "uuids"))
_DRAWN = sa.select(instance_consumers).where(one_of(instance_consumers.c.instance_uuid, "uuids"))
_FORGET = sa.delete(instance_consumers).where(one_of(instance_consumers.c.instance_uuid, "some"))


def forget_consumers(connection: Connection, instances: Collection[str]) -> list[str]:
    """Remove the consumers that were drawn for instances, at most for one batch of them; returns them."""
    drawn = [*consumers_of(connection, instances)]
    if drawn:
        connection.execute(_FORGET, {"some": instances})
    return drawn
