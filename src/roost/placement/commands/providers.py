"""Commands that create, rename, move and delete resource providers. Other writes raise their generations."""

import msgspec

from roost.ledger import Command, State
from roost.model.change import (
    AggregatesChanged,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.placement.errors import (
    BadRequest,
    ConcurrentUpdate,
    DuplicateName,
    HasChildren,
    NotFound,
    ProviderInUse,
)
from roost.placement.known_names import provider_row


def check_generation(state: State, row: int, expected: int | None) -> None:
    """Check that ``expected``, unless None, is the provider's generation. Raises `ConcurrentUpdate`."""
    current = state.fleet.generation.item(row)
    if expected is not None and expected != current:
        raise ConcurrentUpdate(
            f"resource provider generation conflict for provider {state.fleet.uuid(row)}: actual: {current}, "
            f"given: {expected}. Resource provider's generation already changed. Please update the "
            "generation and try again."
        )


def raise_generation(state: State, row: int) -> None:
    """Raise a provider's generation by one."""
    current = state.fleet.generation.item(row)
    state.apply(GenerationChanged(state.fleet.uuid(row), current, current + 1))


class CreateProvider(Command[None], frozen=True):
    """Create a provider, below the one with the uuid ``parent`` if there is one.

    `run` raises `BadRequest`, `DuplicateName`.
    """

    uuid: str
    name: str
    parent: str | None = None

    def run(self, state: State) -> None:
        fleet = state.fleet
        itself = self.parent == self.uuid
        if itself or (self.parent is not None and self.parent not in fleet):
            fault = "cannot be same as UUID." if itself else f"does not exist: {self.parent}"
            raise BadRequest(
                f'Unable to create resource provider "{self.name}", {self.uuid}: parent provider UUID {fault}'
            )
        if self.uuid in fleet:
            raise DuplicateName(f"Conflicting resource provider uuid: {self.uuid} already exists.")
        _check_name(state, self.name, None)
        facts = ProviderFacts(self.name, self.parent, 0)
        state.apply(ProviderChanged(self.uuid, fleet.free_row(), None, facts))


class UpdateProvider(Command[None], frozen=True):
    """Rename a provider, and set its parent; ``parent`` UNSET keeps the present one.

    ``may_move`` says whether a provider that has a parent may get another one, or none. Source: microversion
    1.37. `run` raises `NotFound`, `BadRequest`, `DuplicateName`.
    """

    uuid: str
    name: str
    parent: str | msgspec.UnsetType | None = msgspec.UNSET
    may_move: bool = True

    def run(self, state: State) -> None:
        fleet = state.fleet
        row = provider_row(state.fleet, self.uuid)
        before = fleet.facts(row)
        parent = before.parent if self.parent is msgspec.UNSET else self.parent
        if parent != before.parent:
            self._check_parent(state, row, before.parent, parent)
        _check_name(state, self.name, row)
        after = ProviderFacts(self.name, parent, before.generation)
        if after != before:
            state.apply(ProviderChanged(self.uuid, row, before, after))

    def _check_parent(self, state: State, row: int, before: str | None, parent: str | None) -> None:
        fault = None
        if before is not None and not self.may_move:
            # Before microversion 1.37.
            verb = "un-parenting" if parent is None else "re-parenting"
            fault = f"{verb} a provider is not currently allowed."
        elif parent is not None and parent not in state.fleet:
            fault = f"parent provider UUID does not exist: {parent}"
        elif parent is not None and state.fleet.row(parent) in state.fleet.subtree(row):
            fault = f"creating loop in the provider tree is not allowed. Below it is {parent}"
        if fault is not None:
            raise BadRequest(f"Unable to save resource provider {self.uuid}: {fault}")


class DeleteProvider(Command[None], frozen=True):
    """Delete a provider with its inventories, traits and aggregates.

    `run` raises `NotFound`, `HasChildren`, `ProviderInUse`.
    """

    uuid: str

    def run(self, state: State) -> None:
        fleet = state.fleet
        if self.uuid not in fleet:
            raise NotFound(f"No resource provider with uuid {self.uuid} found for delete")
        row = fleet.row(self.uuid)
        if fleet.children(row):
            raise HasChildren(
                f"Unable to delete parent resource provider {self.uuid}: It has child resource providers."
            )
        if any(fleet.usages(row).values()):
            raise ProviderInUse(
                f"Unable to delete resource provider {self.uuid}: Resource provider has allocations."
            )
        if inventories := fleet.inventories(row):
            state.apply(InventoryChanged(self.uuid, inventories, {}))
        if traits := fleet.traits_of(row):
            state.apply(TraitsChanged(self.uuid, traits, ()))
        if aggregates := fleet.aggregates_of(row):
            state.apply(AggregatesChanged(self.uuid, aggregates, ()))
        state.apply(ProviderChanged(self.uuid, row, fleet.facts(row), None))


def _check_name(state: State, name: str, row: int | None) -> None:
    if state.fleet.row_named(name) not in (None, row):
        raise DuplicateName(f"Conflicting resource provider name: {name} already exists.")
