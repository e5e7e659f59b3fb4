"""The command that changes inventories and allocations of several providers in one commit."""

from collections.abc import Iterable

import msgspec

from roost.ledger import Command, State
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, check_writes, write_allocations
from roost.placement.commands.inventories import check_classes, replace_inventories
from roost.placement.commands.providers import check_generation
from roost.placement.errors import UnknownProvider


class NewInventories(msgspec.Struct, frozen=True):
    """All inventories of a provider after a reshape. ``generation`` None is not checked."""

    provider: str
    inventories: dict[str, Inventory]
    generation: int | None = None


class Reshape(Command[None], frozen=True):
    """Replace the inventories of providers and write the allocations of consumers, all or nothing.

    The allocations are checked while every provider has both its old and its new inventories, so that one can
    move from an inventory that is deleted to one that is added.
    """

    inventories: tuple[NewInventories, ...]
    writes: tuple[ConsumerWrite, ...]

    def consumers(self) -> Iterable[str]:
        return [write.consumer for write in self.writes]

    def run(self, state: State) -> None:
        """Reshape.

        Raises `UnknownProvider`, `ConcurrentUpdate`, `InventoryInUse`, `CannotAllocate`, `BadRequest`.
        """
        fleet = state.fleet
        for new in self.inventories:
            if new.provider not in fleet:
                raise UnknownProvider(f"Resource provider {new.provider} in inventories not found")
            check_generation(state, fleet.row(new.provider), new.generation)
        check_writes(state, self.writes)
        for new in self.inventories:
            check_classes(state, new.inventories)
        tightened = set()
        for new in self.inventories:
            if new.inventories:
                row = fleet.row(new.provider)
                before = fleet.inventories(row)
                tightened |= {
                    (new.provider, name)
                    for name, inventory in new.inventories.items()
                    if name in before and _units(before[name]) != _units(inventory)
                }
                replace_inventories(state, row, {**before, **new.inventories})
        write_allocations(state, self.writes, tightened)
        for new in self.inventories:
            replace_inventories(state, fleet.row(new.provider), new.inventories)


def _units(inventory: Inventory) -> tuple[int, int, int]:
    return inventory.min_unit, inventory.max_unit, inventory.step_size
