"""The ledger's commands that store what an import has read, unchanged.

Each command skips data that is stored already, so an interrupted import can be run again. Data that is stored
with other values is not from the source: the command raises `NotEmpty` and overwrites nothing.
"""

from collections.abc import Iterable

import msgspec

from roost.ledger import Command, Held, State
from roost.ledger.vocabulary import free_class_id, free_trait_id
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
from roost.placement.exchange.errors import NotEmpty


class CopiedProvider(msgspec.Struct, frozen=True):
    """A resource provider with its inventories, traits and aggregates. The latter two are sorted."""

    uuid: str
    facts: ProviderFacts
    inventories: dict[str, Inventory]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


class CopyNames(Command[tuple[int, int]], frozen=True):
    """Stores resource classes, by name with their ids, and traits.

    A class whose id is taken gets another id. Only names appear outside of the database.
    """

    resource_classes: dict[str, int]
    traits: tuple[str, ...]

    def run(self, state: State) -> tuple[int, int]:
        """Return the numbers of new classes and of new traits."""
        fleet = state.fleet
        known = fleet.resource_classes.copy()
        taken = set(known.values())
        new = {name: number for name, number in self.resource_classes.items() if name not in known}
        for name, number in new.items():
            if number not in taken:
                state.apply(ResourceClassChanged(name, None, number))
        for name in new:
            if name not in fleet.resource_classes:
                state.apply(ResourceClassChanged(name, None, free_class_id(state)))
        new_traits = [name for name in self.traits if name not in fleet.traits]
        for name in new_traits:
            state.apply(TraitChanged(name, None, free_trait_id(state)))
        return len(new), len(new_traits)


class CopyProviders(Command[list[CopiedProvider]], frozen=True):
    """Stores providers. A parent is stored by the same command before its children, or by an earlier one."""

    providers: tuple[CopiedProvider, ...]

    def run(self, state: State) -> list[CopiedProvider]:
        """Return the providers that are new.

        Raises:
            NotEmpty: a provider is stored with other values.
        """
        return [each for each in self.providers if not _is_stored(state, each) and _create(state, each)]


class CopyConsumers(Command[list[Held]], frozen=True):
    """Stores consumers with their allocations."""

    held: tuple[Held, ...]

    def consumers(self) -> Iterable[str]:
        return [each.consumer.uuid for each in self.held]

    def run(self, state: State) -> list[Held]:
        """Return the consumers that are new.

        Raises:
            NotEmpty: a consumer is stored with other values.
        """
        new = []
        for each in self.held:
            there = state.held(each.consumer.uuid)
            if there is None:
                consumer = each.consumer
                state.apply(AllocationsChanged(consumer.uuid, None, consumer, {}, each.allocations))
                new.append(each)
            elif there != each:
                raise NotEmpty(f"consumer {each.consumer.uuid} differs from the source")
        return new


def _is_stored(state: State, provider: CopiedProvider) -> bool:
    fleet = state.fleet
    if provider.uuid not in fleet:
        return False
    row = fleet.row(provider.uuid)
    there = CopiedProvider(
        provider.uuid,
        fleet.facts(row),
        fleet.inventories(row),
        fleet.traits_of(row),
        fleet.aggregates_of(row),
    )
    if there != provider:
        raise NotEmpty(f"resource provider {provider.uuid} differs from the source")
    return True


def _create(state: State, provider: CopiedProvider) -> bool:
    fleet, uuid = state.fleet, provider.uuid
    if fleet.row_named(provider.facts.name) is not None:
        raise NotEmpty(
            f"the name {provider.facts.name!r} of resource provider {uuid} is taken by another one"
        )
    state.apply(ProviderChanged(uuid, fleet.free_row(), None, provider.facts))
    if provider.inventories:
        state.apply(InventoryChanged(uuid, {}, provider.inventories))
    if provider.traits:
        state.apply(TraitsChanged(uuid, (), provider.traits))
    if provider.aggregates:
        state.apply(AggregatesChanged(uuid, (), provider.aggregates))
    return True
