"""Commands that add, rename and delete custom resource classes and traits."""

from collections.abc import Iterable

from roost.ledger import Command, State
from roost.ledger.vocabulary import free_class_id, free_trait_id
from roost.model.change import AllocationsChanged, InventoryChanged, ResourceClassChanged, TraitChanged
from roost.model.vocabulary import is_custom
from roost.placement.errors import BadRequest, ConcurrentUpdate, Conflict, NameInUse, NotFound


class AddResourceClass(Command[bool], frozen=True):
    """Add a custom resource class. One that exists is left alone, or refused if it ``must_be_new``."""

    name: str
    must_be_new: bool = False

    def run(self, state: State) -> bool:
        """Return whether the class is new. Raises `Conflict`, `BadRequest`."""
        if self.name in state.fleet.resource_classes:
            if self.must_be_new:
                raise Conflict(f"Conflicting resource class already exists: {self.name}")
            return False
        if not is_custom(self.name):
            raise BadRequest(f"resource class {self.name!r} is not of the form CUSTOM_[A-Z0-9_]+")
        state.apply(ResourceClassChanged(self.name, None, free_class_id(state)))
        return True


class RenameResourceClass(Command[None], frozen=True):
    """Rename a custom resource class, in use or not.

    ``with_allocations``: the uuids of the consumers with an allocation of it. Source: PUT
    /resource_classes/{name} up to microversion 1.6.

    Why there is no change "renamed": inventories and allocations in other changes name their classes, so
    every reader of commits would have to follow the renaming. Instead, a new class is added, all inventories
    and allocations move to it, and the old class is deleted.
    """

    name: str
    new_name: str
    with_allocations: tuple[str, ...] = ()

    def consumers(self) -> Iterable[str]:
        return self.with_allocations

    def run(self, state: State) -> None:
        """Rename the class.

        Raises `NotFound`, `BadRequest`, `Conflict`, and `ConcurrentUpdate` if other consumers have
        allocations of the class as well.
        """
        fleet = state.fleet
        number = custom_class(state, self.name, "update")
        if self.new_name == self.name:
            return
        if self.new_name in fleet.resource_classes:
            raise Conflict(f"Resource class already exists: {self.new_name}")
        old = fleet.inventory_columns(self.name)
        rows = [row for row in fleet.rows().tolist() if old.slot(row) >= 0]
        state.apply(ResourceClassChanged(self.new_name, None, free_class_id(state)))
        # Providers have the class under both names until the allocations have moved.
        for row in rows:
            before = fleet.inventories(row)
            state.apply(
                InventoryChanged(fleet.uuid(row), before, {**before, self.new_name: before[self.name]})
            )
        for consumer in self.with_allocations:
            self._move(state, consumer)
        if any(old.used_by(row) for row in rows):
            raise ConcurrentUpdate(f"Resource class {self.name} was allocated meanwhile; try again.")
        for row in rows:
            before = fleet.inventories(row)
            after = {name: inventory for name, inventory in before.items() if name != self.name}
            state.apply(InventoryChanged(fleet.uuid(row), before, after))
        state.apply(ResourceClassChanged(self.name, number, None))

    def _move(self, state: State, consumer: str) -> None:
        held = state.held(consumer)
        if held is not None:
            holds = {
                provider: {self.new_name if name == self.name else name: n for name, n in resources.items()}
                for provider, resources in held.allocations.items()
            }
            state.apply(AllocationsChanged(consumer, held.consumer, held.consumer, held.allocations, holds))


class DeleteResourceClass(Command[None], frozen=True):
    """Delete a custom resource class. `run` raises `NotFound`, `BadRequest`, `NameInUse`."""

    name: str

    def run(self, state: State) -> None:
        number = custom_class(state, self.name, "delete")
        if state.fleet.inventory_columns(self.name).n:
            raise NameInUse(
                f"Error in delete resource class: Cannot delete resource class {self.name}. "
                "Class is in use in inventory."
            )
        state.apply(ResourceClassChanged(self.name, number, None))


def custom_class(state: State, name: str, verb: str) -> int:
    """Return the id of a custom resource class. Raises `NotFound`, and `BadRequest` for a standard one."""
    number = state.fleet.resource_classes.get(name)
    if number is None:
        raise NotFound(f"No such resource class {name}.")
    if not is_custom(name):
        raise BadRequest(f"Error in {verb} resource class: Cannot {verb} standard resource class {name}.")
    return number


class AddTrait(Command[bool], frozen=True):
    """Add a custom trait. One that exists is left alone."""

    name: str

    def run(self, state: State) -> bool:
        """Return whether the trait is new. Raises `BadRequest`."""
        if self.name in state.fleet.traits:
            return False
        if not is_custom(self.name):
            raise BadRequest(f"trait {self.name!r} is not of the form CUSTOM_[A-Z0-9_]+")
        state.apply(TraitChanged(self.name, None, free_trait_id(state)))
        return True


class DeleteTrait(Command[None], frozen=True):
    """Delete a custom trait. `run` raises `NotFound`, `BadRequest`, `NameInUse`."""

    name: str

    def run(self, state: State) -> None:
        number = state.fleet.traits.get(self.name)
        if number is None:
            raise NotFound(f"No such trait(s): {self.name}.")
        if not is_custom(self.name):
            raise BadRequest(f"Cannot delete standard trait {self.name}")
        if len(state.fleet.with_trait(self.name)):
            raise NameInUse(f"The trait {self.name} is in use by a resource provider.")
        state.apply(TraitChanged(self.name, number, None))
