"""From tables to a fleet."""

from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger import tables
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
)
from roost.model.inventory import Inventory


def head(connection: Connection) -> int:
    """The newest commit's sequence number, 0 if there is none."""
    return connection.execute(sa.select(sa.func.max(tables.commits.c.seq))).scalar() or 0


def load(connection: Connection) -> Fleet:
    """The fleet as the tables have it. The connection's transaction must see one snapshot."""
    fleet = Fleet()
    classes = _names(connection, tables.resource_classes)
    traits = _names(connection, tables.traits)
    for number, name in classes.items():
        fleet.apply(ResourceClassChanged(name, None, number))
    for number, name in traits.items():
        fleet.apply(TraitChanged(name, None, number))
    _load_providers(connection, fleet)
    _load_belongings(connection, fleet, classes, traits)
    fleet.version = head(connection)
    return fleet


def _load_providers(connection: Connection, fleet: Fleet) -> None:
    table = tables.resource_providers
    rows = connection.execute(sa.select(table).order_by(table.c.id)).all()
    for row in rows:
        fleet.apply(ProviderChanged(row.uuid, row.id, None, ProviderFacts(row.name, None, row.generation)))
        fleet.changed_at[row.id] = row.changed_at
    # Parents in a second pass: a provider may be older than the one it was moved under.
    for row in rows:
        if row.parent_id is not None:
            orphan = ProviderFacts(row.name, None, row.generation)
            child = ProviderFacts(row.name, fleet.uuid(row.parent_id), row.generation)
            fleet.apply(ProviderChanged(row.uuid, row.id, orphan, child))


def _load_belongings(
    connection: Connection, fleet: Fleet, classes: dict[int, str], traits: dict[int, str]
) -> None:
    stock: dict[int, dict[str, Inventory]] = defaultdict(dict)
    for provider, class_id, *record in connection.execute(sa.select(tables.inventories)):
        stock[provider][classes[class_id]] = Inventory(*record)
    for provider, inventories in sorted(stock.items()):
        fleet.apply(InventoryChanged(fleet.uuid(provider), {}, inventories))

    having: dict[int, list[str]] = defaultdict(list)
    for provider, trait in connection.execute(sa.select(tables.provider_traits)):
        having[provider].append(traits[trait])
    for provider, names in having.items():
        fleet.apply(TraitsChanged(fleet.uuid(provider), (), tuple(sorted(names))))

    inside: dict[int, list[str]] = defaultdict(list)
    for provider, aggregate in connection.execute(sa.select(tables.provider_aggregates)):
        inside[provider].append(aggregate)
    for provider, names in inside.items():
        fleet.apply(AggregatesChanged(fleet.uuid(provider), (), tuple(sorted(names))))

    table = tables.allocations
    used = sa.select(table.c.provider_id, table.c.resource_class_id, sa.func.sum(table.c.used)).group_by(
        table.c.provider_id, table.c.resource_class_id
    )
    for provider, class_id, amount in connection.execute(used):
        holds = {fleet.uuid(provider): {classes[class_id]: int(amount)}}
        fleet.apply(AllocationsChanged("", None, None, {}, holds))


def _names(connection: Connection, table: sa.Table) -> dict[int, str]:
    return {row.id: row.name for row in connection.execute(sa.select(table))}
