"""Queries for allocations, answered from the tables: the fleet knows only their sums.

Each query runs in one transaction, which sees one snapshot. Allocations and the generations beside them
therefore belong to the same commit, and a client may write at these generations.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger import Held
from roost.ledger.holdings import held_by, held_on
from roost.ledger.tables import allocations, consumers, resource_classes, resource_providers
from roost.storage import in_batches, one_of

_CONSUMERS_OF_CLASS = (
    sa.select(consumers.c.uuid)
    .join(allocations, allocations.c.consumer_id == consumers.c.id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(resource_classes.c.name == sa.bindparam("name"))
    .distinct()
)
_GENERATIONS = sa.select(resource_providers.c.uuid, resource_providers.c.generation).where(
    one_of(resource_providers.c.uuid, "uuids")
)
_LAST_WRITTEN = sa.select(sa.func.max(consumers.c.changed_at)).where(one_of(consumers.c.uuid, "uuids"))


class HeldByConsumer(NamedTuple):
    """A consumer, its allocations, and the generation of each provider that they are on.

    ``written_at``: seconds since the epoch at which the consumer was last written.
    """

    held: Held
    generations: Mapping[str, int]
    written_at: float | None


class HeldOnProvider(NamedTuple):
    """A provider's generation, and the consumers with an allocation on it, by uuid, with all allocations.

    ``written_at``: seconds since the epoch at which one of them was last written; None without consumers.
    """

    generation: int
    held: Mapping[str, Held]
    written_at: float | None


def allocations_of_consumer(connection: Connection, consumer: str) -> HeldByConsumer | None:
    """Read the allocations of a consumer; None if the consumer does not exist."""
    held = held_by(connection, (consumer,)).get(consumer)
    if held is None:
        return None
    generations = _generations(connection, held.allocations)
    return HeldByConsumer(held, generations, _last_written(connection, (consumer,)))


def allocations_on_provider(connection: Connection, provider: str) -> HeldOnProvider | None:
    """Read the consumers with an allocation on a provider; None if the provider does not exist."""
    generation = _generations(connection, (provider,)).get(provider)
    if generation is None:
        return None
    held = held_on(connection, provider)
    return HeldOnProvider(generation, held, _last_written(connection, held))


def consumers_of_class(connection: Connection, resource_class: str) -> tuple[str, ...]:
    """Read the uuids of the consumers with an allocation of a resource class."""
    return tuple(connection.execute(_CONSUMERS_OF_CLASS, {"name": resource_class}).scalars())


def _generations(connection: Connection, providers: Iterable[str]) -> dict[str, int]:
    return {
        uuid: generation
        for some in in_batches(providers)
        for uuid, generation in connection.execute(_GENERATIONS, {"uuids": some})
    }


def _last_written(connection: Connection, uuids: Iterable[str]) -> float | None:
    found = [connection.execute(_LAST_WRITTEN, {"uuids": some}).scalar() for some in in_batches(uuids)]
    return max((at for at in found if at is not None), default=None)
