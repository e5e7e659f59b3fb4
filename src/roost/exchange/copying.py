"""Commands that put what another database holds into a ledger, as it is.

Each finds out by itself what is there already, so that an exchange that was cut off is simply run again.
What is there and differs is somebody else's: nothing is overwritten.
"""

from collections.abc import Iterable

import msgspec

from roost.exchange.errors import NotEmpty
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


class Provider(msgspec.Struct, frozen=True):
    """A resource provider and all that it has. Traits and aggregates are sorted."""

    uuid: str
    facts: ProviderFacts
    inventories: dict[str, Inventory]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


class CopyNames(Command[tuple[int, int]], frozen=True):
    """Resource classes with their ids, and traits.

    A class whose id is taken gets another: only names are seen outside.
    """

    resource_classes: dict[str, int]
    traits: tuple[str, ...]

    def run(self, state: State) -> tuple[int, int]:
        """Returns how many classes and traits are new."""
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


class CopyProviders(Command[list[Provider]], frozen=True):
    """Providers with all that they have; those above others come first, in this command or one before."""

    providers: tuple[Provider, ...]

    def run(self, state: State) -> list[Provider]:
        """Returns those that are new. Raises `NotEmpty`."""
        return [each for each in self.providers if not _is_there(state, each) and _create(state, each)]


class CopyConsumers(Command[list[Held]], frozen=True):
    """Consumers with all that they hold."""

    held: tuple[Held, ...]

    def consumers(self) -> Iterable[str]:
        return [each.consumer.uuid for each in self.held]

    def run(self, state: State) -> list[Held]:
        """Returns those that are new. Raises `NotEmpty`."""
        new = []
        for each in self.held:
            there = state.held(each.consumer.uuid)
            if there is None:
                consumer = each.consumer
                state.apply(AllocationsChanged(consumer.uuid, None, consumer, {}, each.allocations))
                new.append(each)
            elif there != each:
                raise NotEmpty(f"consumer {each.consumer.uuid} is there already, not as in the source")
        return new


def _is_there(state: State, provider: Provider) -> bool:
    fleet = state.fleet
    if provider.uuid not in fleet:
        return False
    row = fleet.row(provider.uuid)
    there = Provider(
        provider.uuid,
        fleet.facts(row),
        fleet.inventories(row),
        fleet.traits_of(row),
        fleet.aggregates_of(row),
    )
    if there != provider:
        raise NotEmpty(f"resource provider {provider.uuid} is there already, not as in the source")
    return True


def _create(state: State, provider: Provider) -> bool:
    fleet, uuid = state.fleet, provider.uuid
    if fleet.row_named(provider.facts.name) is not None:
        raise NotEmpty(f"another resource provider than {uuid} is named {provider.facts.name!r} already")
    state.apply(ProviderChanged(uuid, fleet.free_row(), None, provider.facts))
    if provider.inventories:
        state.apply(InventoryChanged(uuid, {}, provider.inventories))
    if provider.traits:
        state.apply(TraitsChanged(uuid, (), provider.traits))
    if provider.aggregates:
        state.apply(AggregatesChanged(uuid, (), provider.aggregates))
    return True
