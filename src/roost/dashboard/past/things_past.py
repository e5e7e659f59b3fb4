"""Hosts and consumers as they were at a version: the values that pages show."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from roost.dashboard.past.index_view import IndexView
from roost.dashboard.past.past_reader import PastReader
from roost.fleet import Fleet
from roost.ledger.state import Held
from roost.model.allocation import Resources
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.model.inventory import Inventory


class ProviderAsOf(msgspec.Struct, frozen=True, kw_only=True):
    """A provider at a version. ``used``: by class, of the classes that it has inventory or use of."""

    uuid: str
    name: str
    parent: str | None
    generation: int
    inventories: dict[str, Inventory]
    used: Resources
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


class HostAsOf(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of providers at a version.

    ``providers``: parents before their children. ``previous``: the last commit up to the version that touches
    one of them, ``next``: the first one after it; None if the index has none.
    """

    version: int
    providers: tuple[ProviderAsOf, ...]
    holders: tuple[Held, ...]
    previous: int | None
    next: int | None

    def fleet(self) -> Fleet:
        """Return a fleet of the tree alone, with the use that its holders make of it."""
        fleet = Fleet()
        for row, each in enumerate(self.providers):
            facts = ProviderFacts(each.name, each.parent if row else None, each.generation)
            fleet.apply(ProviderChanged(each.uuid, row, None, facts))
            fleet.apply(InventoryChanged(each.uuid, {}, each.inventories))
            fleet.apply(TraitsChanged(each.uuid, (), each.traits))
            fleet.apply(AggregatesChanged(each.uuid, (), each.aggregates))
        for holder in self.holders:
            here = {uuid: held for uuid, held in holder.allocations.items() if uuid in fleet}
            fleet.apply(AllocationsChanged(holder.consumer.uuid, None, holder.consumer, {}, here))
        fleet.version = self.version
        return fleet


class ProviderPlace(msgspec.Struct, frozen=True):
    """The name of a provider, and uuid and name of the root of its tree."""

    name: str
    root: str
    root_name: str


class ConsumerAsOf(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer at a version. ``holder``: None if it did not exist.

    ``places``: of the providers that it held, by uuid. ``previous``: the commit that made this state;
    ``next``: the one that ended it; None if the index has none.
    """

    version: int
    holder: Held | None
    places: dict[str, ProviderPlace]
    previous: int | None
    next: int | None


def host_at(connection: Connection, view: IndexView, root: str, version: int) -> HostAsOf | None:
    """Return the tree below a provider at a version; None if there was no such provider."""
    reader = PastReader(connection, view, version)
    if reader.facts(root) is None:
        return None
    uuids = [root]
    level = [root]
    while level:
        seen = set(uuids)
        level = sorted(each for each in reader.children(level) if each not in seen)
        uuids += level
    held = reader.holders(uuids)
    used: dict[str, Resources] = {uuid: {} for uuid in uuids}
    for each in held.values():
        for uuid, resources in each.allocations.items():
            for name, amount in resources.items() if uuid in used else ():
                used[uuid][name] = used[uuid].get(name, 0) + amount
    posts = [reader.posts_of(uuid).seq for uuid in uuids]
    return HostAsOf(
        version=version,
        providers=tuple(_provider(reader, uuid, used[uuid]) for uuid in uuids),
        holders=tuple(held[uuid] for uuid in sorted(held)),
        previous=view.last_touch(uuids, version),
        next=min((int(seqs[0]) for seqs in posts if len(seqs)), default=None),
    )


def consumer_at(connection: Connection, view: IndexView, uuid: str, version: int) -> ConsumerAsOf:
    """Return a consumer at a version."""
    reader = PastReader(connection, view, version)
    held = reader.consumer(uuid)
    return ConsumerAsOf(
        version=version,
        holder=held,
        places={} if held is None else _places(reader, list(held.allocations)),
        previous=view.last_change(uuid, version),
        next=view.next_change(uuid, version),
    )


def _provider(reader: PastReader, uuid: str, used: Mapping[str, int]) -> ProviderAsOf:
    facts, inventories = reader.facts(uuid), reader.inventories(uuid)
    assert facts is not None
    return ProviderAsOf(
        uuid=uuid,
        name=facts.name,
        parent=facts.parent,
        generation=facts.generation,
        inventories=inventories,
        used={name: used.get(name, 0) for name in (*inventories, *used)},
        traits=reader.traits(uuid),
        aggregates=reader.aggregates(uuid),
    )


def _places(reader: PastReader, uuids: Sequence[str]) -> dict[str, ProviderPlace]:
    reader.prepare(uuids)
    found = {}
    for uuid in uuids:
        facts = reader.facts(uuid)
        if facts is None:
            continue
        root, above = uuid, facts
        while above.parent is not None and (next_above := reader.facts(above.parent)) is not None:
            root, above = above.parent, next_above
        found[uuid] = ProviderPlace(facts.name, root, above.name)
    return found
