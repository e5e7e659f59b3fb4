"""Who holds something, and since when: read from the tables."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import allocations, consumers, resource_classes

_HOLDERS = (
    sa.select(consumers.c.uuid)
    .join(allocations, allocations.c.consumer_id == consumers.c.id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(resource_classes.c.name == sa.bindparam("name"))
    .distinct()
)
_AT_ONCE = 500
"""Consumers named in one statement."""


def holders_of(connection: Connection, resource_class: str) -> tuple[str, ...]:
    """The consumers that hold some of a class."""
    return tuple(connection.execute(_HOLDERS, {"name": resource_class}).scalars())


def written_at(connection: Connection, uuids: Iterable[str]) -> float | None:
    """When one of these consumers was last written, in seconds since the epoch; None if there is none."""
    names = list(uuids)
    found = [
        connection.execute(
            sa.select(sa.func.max(consumers.c.changed_at)).where(
                consumers.c.uuid.in_(names[start : start + _AT_ONCE])
            )
        ).scalar()
        for start in range(0, len(names), _AT_ONCE)
    ]
    return max((at for at in found if at is not None), default=None)
