"""Commands that write and delete the allocations of consumers."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import msgspec

from roost.fleet.fits import fits, meets_units
from roost.fleet.inventory_columns import InventoryColumns
from roost.ledger import Command, Held, Moment, State
from roost.model.allocation import UNKNOWN_TYPE, Allocations, Consumer
from roost.model.assignment import Assignment
from roost.model.change import AllocationsChanged
from roost.placement.commands import assignment_condition
from roost.placement.commands.assignment_condition import ConsumerWrite as ConsumerWrite
from roost.placement.commands.assignment_condition import assignments_after, check_assignment
from roost.placement.commands.group_condition import judge
from roost.placement.commands.providers import raise_generation
from roost.placement.errors import (
    BadRequest,
    CannotAllocate,
    ConcurrentUpdate,
    GroupRefused,
    NotFound,
    PlacementError,
)
from roost.placement.moments import headers_of

Use = dict[tuple[str, str], int]
"""The amount for each provider uuid and resource class."""


class WriteAllocations(Command[Moment], frozen=True):
    """Write the allocations of consumers, all or nothing. Returns the ledger moment of the checks."""

    writes: tuple[ConsumerWrite, ...]

    def consumers(self) -> Iterable[str]:
        return [write.consumer for write in self.writes]

    @property
    def requires_new_consumers(self) -> bool:
        return all(write.generation is None for write in self.writes)

    def run(self, state: State) -> Moment:
        moment = state.moment
        try:
            write_allocations(state, self.writes)
        except PlacementError as error:
            error.headers = {**error.headers, **headers_of(moment)}
            raise
        return moment


class DeleteAllocations(Command[None], frozen=True):
    """Delete all allocations of a consumer. `run` raises `NotFound`.

    No provider's generation is raised. Source: ``DELETE /allocations/{consumer}`` of upstream.
    """

    consumer: str

    def consumers(self) -> Iterable[str]:
        return (self.consumer,)

    def run(self, state: State) -> None:
        held = state.held(self.consumer)
        if held is None:
            raise NotFound(f"No allocations for consumer '{self.consumer}'")
        state.apply(AllocationsChanged(self.consumer, held.consumer, None, held.allocations, {}))


class FreeConsumers(Command[None], frozen=True):
    """Delete all allocations of several consumers. Consumers without any are skipped."""

    names: tuple[str, ...]

    def consumers(self) -> Iterable[str]:
        return self.names

    def run(self, state: State) -> None:
        for name in dict.fromkeys(self.names):
            held = state.held(name)
            if held is not None:
                state.apply(AllocationsChanged(name, held.consumer, None, held.allocations, {}))


def write_allocations(
    state: State, writes: Sequence[ConsumerWrite], tightened: Set[tuple[str, str]] = frozenset()
) -> None:
    """Check and apply the writes of several consumers as one.

    All present allocations of the consumers count as free, so that an allocation that moves from one of them
    to another is not counted twice. An allocation beyond the capacity, or in violation of ``min_unit``,
    ``max_unit`` or ``step_size``, passes if no more of the inventory is in use after the writes than before.
    So after an inventory was tightened, consumers can still shrink, rewrite or hand over their allocations.
    ``tightened``: the providers and classes whose units the command itself changes; there the units hold for
    every allocation that is written. The conditions of server groups are checked on the state after all
    writes.

    Raises:
        ConcurrentUpdate: A generation is not the present one.
        BadRequest: A provider or class is unknown, or an amount is below 1.
        CannotAllocate: An allocation does not fit.
        GroupRefused: The condition of a server group is not met.
        AssignmentChanged: The assignments of a node have changed since a write was fitted beside them.
        AssignmentRefused: Another consumer has exclusive use of the same CPU or device.

    Nothing is applied if it raises.
    """
    held = check_writes(state, writes)
    freed: Use = defaultdict(int)
    for before in held:
        if before is not None:
            _add(freed, before.allocations)
    wanted: Use = defaultdict(int)
    all_writes = _AllWrites(writes, freed, wanted, tightened)
    for write in writes:
        _judge(state, write, all_writes)
    assignments = assignments_after(state, writes, held)
    if any(assignments):
        assignment_condition.judge(state, writes, held, assignments)
    mark = len(state.changes)
    handed = _handed_groups(writes, held)
    for write, before, assignment in zip(writes, held, assignments, strict=True):
        _apply(state, write, before, _group_of(write, before, handed), assignment)
    for write, before in zip(writes, held, strict=True):
        if write.group is not None:
            try:
                judge(state, write.consumer, write.group, before)
            except GroupRefused:
                state.take_back(mark)
                raise
    # As upstream: the providers of new allocations; those of old ones only if the consumer is deleted.
    touched: dict[str, None] = {}
    for write, before in zip(writes, held, strict=True):
        touched.update(dict.fromkeys(write.allocations or (before.allocations if before else {})))
    for provider in touched:
        raise_generation(state, state.fleet.row(provider))


def check_writes(state: State, writes: Sequence[ConsumerWrite]) -> list[Held | None]:
    """Check the writes apart from amounts. Returns the present allocations of each consumer.

    Raises, in upstream's order, `ConcurrentUpdate` for a generation, then `BadRequest` for an unknown
    provider, then for an unknown class, then for an assignment that makes no sense.
    """
    held = [_check_consumer(state, write) for write in writes]
    for write in writes:
        for provider in write.allocations:
            if provider not in state.fleet:
                raise BadRequest(f"Allocation for resource provider '{provider}' that does not exist.")
    for write in writes:
        for resources in write.allocations.values():
            for name in resources:
                if name not in state.fleet.resource_classes:
                    raise BadRequest(
                        f"Unable to allocate inventory for consumer {write.consumer}: "
                        f"No such resource class {name}."
                    )
    for write in writes:
        if isinstance(write.assignment, Assignment):
            check_assignment(state, write, write.assignment)
    return held


def _check_consumer(state: State, write: ConsumerWrite) -> Held | None:
    held = state.held(write.consumer)
    current = held.consumer.generation if held is not None else None
    if write.generation is not msgspec.UNSET and write.generation != current:
        expected, got = ("null" if number is None else number for number in (current, write.generation))
        raise ConcurrentUpdate(
            f"consumer generation conflict - expected {expected} but got {got} for consumer {write.consumer}"
        )
    return held


@dataclass(frozen=True)
class _AllWrites:
    """The writes of a command. ``freed``: amounts held before; ``wanted``: amounts checked so far."""

    writes: Sequence[ConsumerWrite]
    freed: Use
    wanted: Use
    tightened: Set[tuple[str, str]]

    def take_no_more(self, provider: str, name: str) -> bool:
        """Return whether all writes together take no more of an inventory than their consumers held."""
        return self._taken[provider, name] <= self.freed[provider, name]

    @cached_property
    def _taken(self) -> Use:
        taken: Use = defaultdict(int)
        for write in self.writes:
            _add(taken, write.allocations)
        return taken


def _judge(state: State, write: ConsumerWrite, among: _AllWrites) -> None:
    """Check that all allocations of a write fit, and add them to ``among.wanted``.

    Raises `BadRequest`, `CannotAllocate`.
    """
    for provider, resources in write.allocations.items():
        row = state.fleet.row(provider)
        for name, amount in resources.items():
            if amount < 1:
                raise BadRequest(f"amount of {name} must be at least 1, not {amount}")
            _judge_amount(state.fleet.inventory_columns(name), row, provider, name, amount, among)


def _judge_amount(
    columns: InventoryColumns, row: int, provider: str, name: str, amount: int, among: _AllWrites
) -> None:
    slot = columns.slot(row)
    if slot < 0:
        raise CannotAllocate(
            f"Unable to allocate inventory: Inventory for '{name}' on resource provider '{provider}' "
            "invalid: there is none"
        )
    key = (provider, name)
    used = columns.used.item(slot) - among.freed[key] + among.wanted[key]
    among.wanted[key] += amount
    capacity = columns.capacity.item(slot)
    units = (columns.min_unit.item(slot), columns.max_unit.item(slot), columns.step_size.item(slot))
    if fits(amount, used, capacity, *units):
        return
    beside_units = not meets_units(amount, *units)
    # The sum over all writes, whatever their order: one write alone may hand over only a part.
    if not (beside_units and key in among.tightened) and among.take_no_more(provider, name):
        return
    refusal = (
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on resource provider "
        f"'{provider}'."
    )
    if beside_units:
        raise CannotAllocate(
            f"{refusal} The requested amount would violate inventory constraints: {amount} with "
            "min_unit {}, max_unit {}, step_size {}".format(*units)
        )
    raise CannotAllocate(
        f"{refusal} The requested amount would exceed the capacity: {amount} more, where {used} of "
        f"{capacity} are in use"
    )


def _handed_groups(writes: Sequence[ConsumerWrite], held: Sequence[Held | None]) -> dict[Hashable, str]:
    """Return by allocations the server groups of members that give up or change all of these allocations."""
    groups: dict[Hashable, str] = {}
    for write, source in zip(writes, held, strict=True):
        group = None if source is None else source.consumer.group
        if source is not None and group is not None and source.allocations != write.allocations:
            groups.setdefault(_key(source.allocations), group)
    return groups


def _key(allocations: Allocations) -> Hashable:
    """Return a key that is equal for equal allocations."""
    return frozenset((provider, frozenset(held.items())) for provider, held in allocations.items())


def _group_of(write: ConsumerWrite, before: Held | None, handed: Mapping[Hashable, str]) -> str | None:
    """Return the server group of a consumer after the write. ``handed``: as of `_handed_groups`.

    A new consumer that takes over all allocations of a member in the same request takes over its group too.
    Nova moves the allocations of an instance to its migration in this way, and back if the move fails. So the
    source host counts as a host of the group until the migration ends.
    """
    if write.group is not None:
        return write.group.group
    if before is not None:
        return before.consumer.group
    return handed.get(_key(write.allocations)) if handed and write.allocations else None


def _apply(
    state: State,
    write: ConsumerWrite,
    before: Held | None,
    group: str | None,
    assignment: Assignment | None,
) -> None:
    if before is None and not write.allocations:
        return
    owner = before.consumer if before is not None else None
    after = None
    if write.allocations:
        after = Consumer(
            uuid=write.consumer,
            project_id=write.project_id,
            user_id=write.user_id,
            generation=1 if owner is None else owner.generation + 1,
            consumer_type=write.consumer_type or (UNKNOWN_TYPE if owner is None else owner.consumer_type),
            group=group,
            assignment=assignment,
        )
    held = before.allocations if before is not None else {}
    state.apply(AllocationsChanged(write.consumer, owner, after, held, write.allocations))


def _add(use: Use, allocations: Allocations) -> None:
    for provider, resources in allocations.items():
        for name, amount in resources.items():
            use[(provider, name)] += amount
