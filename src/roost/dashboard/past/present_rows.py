"""Rows of single providers, read from the tables of the ledger."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import (
    allocations,
    consumers,
    inventories,
    provider_aggregates,
    provider_traits,
    resource_classes,
    resource_providers,
    traits,
)
from roost.model.change import ProviderFacts
from roost.model.inventory import Inventory
from roost.storage import in_batches, one_of

_PARENT = resource_providers.alias("parents")


class PresentProvider(NamedTuple):
    """A provider as the tables have it. ``row``: its primary key. Traits and aggregates are sorted."""

    row: int
    facts: ProviderFacts
    inventories: dict[str, Inventory]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


def present_providers(connection: Connection, uuids: Iterable[str]) -> dict[str, PresentProvider]:
    """Return those of some providers that exist, by uuid."""
    found: dict[str, PresentProvider] = {}
    for some in in_batches(uuids):
        rows = connection.execute(_FACTS, {"uuids": some}).all()
        ids = [row.id for row in rows]
        of_inventories = _grouped(connection, _INVENTORIES, ids)
        of_traits = _grouped(connection, _TRAITS, ids)
        of_aggregates = _grouped(connection, _AGGREGATES, ids)
        for row in rows:
            found[row.uuid] = PresentProvider(
                row.id,
                ProviderFacts(row.name, row.parent, row.generation),
                {each[0]: Inventory(*each[1:]) for each in of_inventories.get(row.id, ())},
                tuple(sorted(each[0] for each in of_traits.get(row.id, ()))),
                tuple(sorted(each[0] for each in of_aggregates.get(row.id, ()))),
            )
    return found


def present_children(connection: Connection, uuids: Iterable[str]) -> dict[str, list[str]]:
    """Return the uuids of the children of some providers, by the parent's uuid."""
    found: dict[str, list[str]] = {}
    for some in in_batches(uuids):
        for parent, uuid in connection.execute(_CHILDREN, {"uuids": some}):
            found.setdefault(parent, []).append(uuid)
    return found


def present_holders(connection: Connection, uuids: Iterable[str]) -> dict[str, list[str]]:
    """Return the uuids of the consumers that hold something of some providers, by the provider's uuid."""
    found: dict[str, list[str]] = {}
    for some in in_batches(uuids):
        for provider, consumer in connection.execute(_HOLDERS, {"uuids": some}):
            found.setdefault(provider, []).append(consumer)
    return found


def _grouped(
    connection: Connection, query: sa.Select[Any], ids: Sequence[int]
) -> dict[int, list[Sequence[Any]]]:
    found: dict[int, list[Sequence[Any]]] = {}
    for number, *values in connection.execute(query, {"ids": ids}) if ids else ():
        found.setdefault(number, []).append(values)
    return found


_FACTS = (
    sa.select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_providers.c.name,
        resource_providers.c.generation,
        _PARENT.c.uuid.label("parent"),
    )
    .select_from(resource_providers.outerjoin(_PARENT, _PARENT.c.id == resource_providers.c.parent_id))
    .where(one_of(resource_providers.c.uuid, "uuids"))
)
_CHILDREN = (
    sa.select(_PARENT.c.uuid, resource_providers.c.uuid)
    .select_from(resource_providers.join(_PARENT, _PARENT.c.id == resource_providers.c.parent_id))
    .where(one_of(_PARENT.c.uuid, "uuids"))
)
_INVENTORIES = (
    sa.select(
        inventories.c.provider_id,
        resource_classes.c.name,
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.min_unit,
        inventories.c.max_unit,
        inventories.c.step_size,
        inventories.c.allocation_ratio,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(one_of(inventories.c.provider_id, "ids"))
)
_TRAITS = (
    sa.select(provider_traits.c.provider_id, traits.c.name)
    .join(traits, traits.c.id == provider_traits.c.trait_id)
    .where(one_of(provider_traits.c.provider_id, "ids"))
)
_AGGREGATES = sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate_uuid).where(
    one_of(provider_aggregates.c.provider_id, "ids")
)
_HOLDERS = (
    sa.select(resource_providers.c.uuid, consumers.c.uuid)
    .select_from(
        resource_providers.join(allocations, allocations.c.provider_id == resource_providers.c.id).join(
            consumers, consumers.c.id == allocations.c.consumer_id
        )
    )
    .where(one_of(resource_providers.c.uuid, "uuids"))
    .distinct()
)
