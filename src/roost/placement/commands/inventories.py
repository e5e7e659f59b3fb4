"""Commands that set the inventories of a provider."""

from collections.abc import Iterable

from roost.ledger import Command, State
from roost.model.change import InventoryChanged
from roost.model.inventory import Inventory
from roost.placement.commands.providers import check_generation, raise_generation
from roost.placement.errors import BadRequest, ConcurrentUpdate, InventoryInUse, NotFound
from roost.placement.known_names import provider_row


class SetInventories(Command[int], frozen=True):
    """Replace all inventories of a provider. ``generation`` None is not checked.

    ``may_reserve_all`` says whether the reserved amount may equal the total. Source: microversion 1.26.
    """

    provider: str
    inventories: dict[str, Inventory]
    generation: int | None = None
    may_reserve_all: bool = True

    def run(self, state: State) -> int:
        """Return the provider's new generation.

        Raises `NotFound`, `ConcurrentUpdate`, `InventoryInUse`, `BadRequest` for an unknown class.
        """
        row = provider_row(state.fleet, self.provider)
        check_generation(state, row, self.generation)
        check_classes(state, self.inventories)
        for name, inventory in self.inventories.items():
            _check_capacity(self.provider, name, inventory, self.may_reserve_all)
        return replace_inventories(state, row, self.inventories)


class AddInventory(Command[int], frozen=True):
    """Add an inventory that the provider does not have yet."""

    provider: str
    resource_class: str
    inventory: Inventory
    generation: int | None = None
    may_reserve_all: bool = True

    def run(self, state: State) -> int:
        """Return the provider's new generation. Raises `NotFound`, `ConcurrentUpdate`, `BadRequest`."""
        row = provider_row(state.fleet, self.provider)
        check_generation(state, row, self.generation)
        check_classes(state, (self.resource_class,))
        _check_capacity(
            self.provider, self.resource_class, self.inventory, self.may_reserve_all, "Unable to create"
        )
        before = state.fleet.inventories(row)
        if self.resource_class in before:
            raise ConcurrentUpdate(
                f"Update conflict: resource provider {self.provider} already has inventory of "
                f"{self.resource_class}"
            )
        return replace_inventories(state, row, {**before, self.resource_class: self.inventory})


class SetInventory(Command[int], frozen=True):
    """Replace an inventory that the provider has already."""

    provider: str
    resource_class: str
    inventory: Inventory
    generation: int | None = None
    may_reserve_all: bool = True

    def run(self, state: State) -> int:
        """Return the provider's new generation. Raises `NotFound`, `ConcurrentUpdate`, `BadRequest`."""
        row = provider_row(state.fleet, self.provider)
        check_generation(state, row, self.generation)
        _check_capacity(self.provider, self.resource_class, self.inventory, self.may_reserve_all)
        if self.resource_class not in state.fleet.resource_classes:
            raise NotFound(f"No such resource class {self.resource_class}.")
        before = state.fleet.inventories(row)
        if self.resource_class not in before:
            raise BadRequest(
                "No inventory record with resource class for resource provider "
                f"{self.provider}: No inventory of class {self.resource_class} found."
            )
        return replace_inventories(state, row, {**before, self.resource_class: self.inventory})


class DeleteInventory(Command[int], frozen=True):
    """Delete an inventory."""

    provider: str
    resource_class: str

    def run(self, state: State) -> int:
        """Return the provider's new generation.

        Raises `NotFound`, and `ConcurrentUpdate` if something is allocated from the inventory.
        """
        row = provider_row(state.fleet, self.provider)
        after = state.fleet.inventories(row)
        if after.pop(self.resource_class, None) is None:
            raise NotFound(
                f"No inventory of class {self.resource_class} found for delete: "
                f"resource provider {self.provider} has none"
            )
        try:
            return replace_inventories(state, row, after)
        except InventoryInUse as error:
            # Only for this operation does upstream use the code of a concurrent update.
            raise ConcurrentUpdate(
                f"Unable to delete inventory of class {self.resource_class}: {error}"
            ) from error


def check_classes(state: State, names: Iterable[str]) -> None:
    """Check that all these resource classes exist. Raises `BadRequest`."""
    unknown = sorted(name for name in names if name not in state.fleet.resource_classes)
    if unknown:
        raise BadRequest(f"Unknown resource class in inventory: No such resource class {', '.join(unknown)}.")


def _check_capacity(
    provider: str, name: str, inventory: Inventory, may_reserve_all: bool, verb: str = "Unable to update"
) -> None:
    """Check that the capacity is not negative, nor 0 unless ``may_reserve_all``. Raises `BadRequest`."""
    if inventory.capacity < 0 or (inventory.capacity == 0 and not may_reserve_all):
        raise BadRequest(
            f"{verb} inventory for resource provider {provider}: Invalid inventory for '{name}' on "
            f"resource provider '{provider}'. The reserved value is greater than "
            f"{'' if may_reserve_all else 'or equal to '}total."
        )


def replace_inventories(state: State, row: int, after: dict[str, Inventory]) -> int:
    """Replace a provider's inventories and raise its generation. Returns the new generation.

    Raises:
        InventoryInUse: Something is allocated from an inventory that ``after`` lacks.
    """
    fleet = state.fleet
    uuid = fleet.uuid(row)
    used = [
        name
        for name in fleet.inventories(row)
        if name not in after and fleet.inventory_columns(name).used_by(row)
    ]
    used.sort(key=fleet.resource_classes.__getitem__)
    if used:
        raise InventoryInUse(
            f"update conflict: Inventory for '{', '.join(used)}' on resource provider '{uuid}' in use."
        )
    before = fleet.inventories(row)
    if before != after:
        state.apply(InventoryChanged(uuid, before, after))
    raise_generation(state, row)
    return fleet.generation.item(row)
