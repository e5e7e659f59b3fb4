"""Usages: sums of the allocations of a project or user, read from the tables."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import allocations, consumers, resource_classes
from roost.model.allocation import Resources


class Usage(msgspec.Struct, frozen=True):
    """The number of consumers of one type, and the sum of their allocations by resource class."""

    consumer_type: str
    consumers: int
    resources: Resources


def usages_of(connection: Connection, project_id: str, user_id: str | None = None) -> list[Usage]:
    """The usages of a project, or of one of its users: one for each consumer type, ordered by its name."""
    owned = consumers.c.project_id == project_id
    if user_id is not None:
        owned &= consumers.c.user_id == user_id
    count = sa.select(consumers.c.consumer_type, sa.func.count()).where(owned)
    used = (
        sa.select(consumers.c.consumer_type, resource_classes.c.name, sa.func.sum(allocations.c.used))
        .select_from(
            allocations.join(consumers, consumers.c.id == allocations.c.consumer_id).join(
                resource_classes, resource_classes.c.id == allocations.c.resource_class_id
            )
        )
        .where(owned)
    )
    resources: dict[str, Resources] = {}
    for consumer_type, name, amount in connection.execute(
        used.group_by(consumers.c.consumer_type, resource_classes.c.name)
    ):
        resources.setdefault(consumer_type, {})[name] = int(amount)
    return [
        Usage(consumer_type, number, resources.get(consumer_type, {}))
        for consumer_type, number in connection.execute(
            count.group_by(consumers.c.consumer_type).order_by(consumers.c.consumer_type)
        )
    ]
