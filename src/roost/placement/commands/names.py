"""Custom resource classes and traits coming and going."""

from collections.abc import Iterable

import msgspec

from roost.ledger import State
from roost.ledger.vocabulary import free_class_id, free_trait_id
from roost.model.change import ResourceClassChanged, TraitChanged
from roost.model.vocabulary import is_custom
from roost.placement.errors import BadRequest, Conflict, NameInUse, NotFound


class AddResourceClass(msgspec.Struct, frozen=True):
    """A custom resource class. If it is there already: a conflict if ``must_be_new``, else nothing."""

    name: str
    must_be_new: bool = False

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> bool:
        """Returns whether it is new."""
        if self.name in state.fleet.resource_classes:
            if self.must_be_new:
                raise Conflict(f"Conflicting resource class already exists: {self.name}")
            return False
        if not is_custom(self.name):
            raise BadRequest(f"resource class {self.name!r} is not of the form CUSTOM_[A-Z0-9_]+")
        state.apply(ResourceClassChanged(self.name, None, free_class_id(state)))
        return True


class DeleteResourceClass(msgspec.Struct, frozen=True):
    """A custom resource class goes."""

    name: str

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> None:
        number = state.fleet.resource_classes.get(self.name)
        if number is None:
            raise NotFound(f"No such resource class: {self.name}")
        if not is_custom(self.name):
            raise BadRequest(f"Cannot delete standard resource class {self.name}")
        if state.fleet.stock(self.name).n:
            raise NameInUse(f"Cannot delete resource class {self.name}: it is in use in inventory")
        state.apply(ResourceClassChanged(self.name, number, None))


class AddTrait(msgspec.Struct, frozen=True):
    """A custom trait; nothing happens if it is there already."""

    name: str

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> bool:
        """Returns whether it is new."""
        if self.name in state.fleet.traits:
            return False
        if not is_custom(self.name):
            raise BadRequest(f"trait {self.name!r} is not of the form CUSTOM_[A-Z0-9_]+")
        state.apply(TraitChanged(self.name, None, free_trait_id(state)))
        return True


class DeleteTrait(msgspec.Struct, frozen=True):
    """A custom trait goes."""

    name: str

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> None:
        number = state.fleet.traits.get(self.name)
        if number is None:
            raise NotFound(f"No such trait(s): {self.name}")
        if not is_custom(self.name):
            raise BadRequest(f"Cannot delete standard trait {self.name}")
        if len(state.fleet.with_trait(self.name)):
            raise NameInUse(f"The trait {self.name} is in use by a resource provider.")
        state.apply(TraitChanged(self.name, number, None))
