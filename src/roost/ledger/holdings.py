"""Consumers and what they hold, read from the tables."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.state import Held
from roost.ledger.tables import allocations, consumers, resource_classes, resource_providers
from roost.model.allocation import Allocations, Consumer
from roost.storage import in_batches

_CONSUMERS = sa.select(
    consumers.c.uuid,
    consumers.c.project_id,
    consumers.c.user_id,
    consumers.c.generation,
    consumers.c.consumer_type,
)
_ALLOCATIONS = sa.select(
    allocations.c.consumer_uuid, resource_providers.c.uuid, resource_classes.c.name, allocations.c.used
).select_from(
    allocations.join(resource_providers, resource_providers.c.id == allocations.c.provider_id).join(
        resource_classes, resource_classes.c.id == allocations.c.resource_class_id
    )
)
_CONSUMERS_NAMED = _CONSUMERS.where(consumers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
_ALLOCATIONS_NAMED = _ALLOCATIONS.where(
    allocations.c.consumer_uuid.in_(sa.bindparam("uuids", expanding=True))
)
_ON_PROVIDER = sa.select(allocations.c.consumer_uuid).join(
    resource_providers, resource_providers.c.id == allocations.c.provider_id
)


def held_by(connection: Connection, uuids: Iterable[str]) -> dict[str, Held]:
    """Those of the named consumers that exist, with what they hold."""
    found: dict[str, Held] = {}
    for some in in_batches(uuids):
        owners = connection.execute(_CONSUMERS_NAMED, {"uuids": some}).all()
        if owners:
            names = [owner.uuid for owner in owners]
            found.update(_together(owners, connection.execute(_ALLOCATIONS_NAMED, {"uuids": names}).all()))
    return found


def held_on(connection: Connection, provider: str) -> dict[str, Held]:
    """The consumers with an allocation from a provider, with all that they hold."""
    rows = connection.execute(_ON_PROVIDER.where(resource_providers.c.uuid == provider).distinct())
    return held_by(connection, rows.scalars().all())


def held_by_all(connection: Connection) -> dict[str, Held]:
    """Every consumer, with what it holds."""
    return _together(connection.execute(_CONSUMERS).all(), connection.execute(_ALLOCATIONS).all())


def _together(owners: Sequence[sa.Row], rows: Sequence[sa.Row]) -> dict[str, Held]:  # type: ignore[type-arg]
    held: dict[str, Allocations] = defaultdict(dict)
    for consumer, provider, name, used in rows:
        held[consumer].setdefault(provider, {})[name] = used
    return {owner.uuid: Held(Consumer(*owner), held.get(owner.uuid, {})) for owner in owners}
