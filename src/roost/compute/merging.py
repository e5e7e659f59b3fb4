"""The three-way merge of a node's providers: what was last applied, what the driver wants, what is there.

The agent changes what it made, and adds what is missing. What others made stays: child providers, traits,
aggregates, resource classes. Of an inventory total, min_unit, max_unit and step_size are facts of the host,
which the driver tells. ``reserved`` and ``allocation_ratio`` may be set by an operator: the driver's value is
written where the driver tells another one than it told last.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from roost.agents.types import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    ProviderState,
    ProviderWrite,
    SetAggregates,
    SetInventories,
    SetTraits,
)
from roost.compute.applied import NOTHING, Applied, AppliedProvider
from roost.compute.provider_tree import ProviderTree
from roost.compute.tree_provider import ToldProvider
from roost.model.inventory import Inventory

_FRESH = msgspec.structs.asdict(NOTHING)


class PlannedWrite(NamedTuple):
    """A write, and the fields of what is applied of its provider that it changes.

    ``write`` None: nothing is to be sent, as placement has what the driver wants.
    """

    provider: str
    write: ProviderWrite | None
    changes: Mapping[str, Any]

    def take(self, applied: Applied) -> None:
        """Note in ``applied`` that the write is made."""
        if isinstance(self.write, DeleteProvider):
            applied.pop(self.provider, None)
        else:
            before = applied.get(self.provider, NOTHING)
            applied[self.provider] = msgspec.structs.replace(before, **self.changes)


class Plan(NamedTuple):
    """The writes that make placement what the driver wants.

    ``before``: what is applied, without providers that are neither there nor wanted. ``ahead``: the same with
    everything that the writes add. An agent that keeps it before it writes never takes its own additions for
    those of others. ``kept``: the uuids of providers that the driver took out, and that stay because others
    made them.
    """

    writes: tuple[PlannedWrite, ...]
    before: Applied
    ahead: Applied
    kept: frozenset[str]

    def changes_nothing(self, applied: Applied) -> bool:
        """Whether there is nothing to be sent, and nothing to be kept beside what is applied already."""
        if self.ahead != applied or any(each.write is not None for each in self.writes):
            return False
        after = dict(self.before)
        for each in self.writes:
            each.take(after)
        return after == applied

    def without(self, providers: Collection[str]) -> "Plan":
        """The plan without the writes to some providers."""
        return self._replace(writes=tuple(each for each in self.writes if each.provider not in providers))


def plan(
    applied: Mapping[str, AppliedProvider], wanted: ProviderTree, there: Sequence[ProviderState]
) -> Plan:
    """Plan the writes. They are to be made in their order: parents before children, deletions last.

    ``there`` is what ``wanted`` was made from.
    """
    present = {state.uuid: state for state in there}
    before = {uuid: each for uuid, each in applied.items() if uuid in present or uuid in wanted}
    ahead = dict(before)
    writes: list[PlannedWrite] = []
    for provider in wanted.told():
        own = NOTHING if provider.uuid not in present else before.get(provider.uuid, NOTHING)
        for each in _writes(provider, own, present.get(provider.uuid)):
            writes.append(each)
            ahead[provider.uuid] = _joined(ahead.get(provider.uuid, NOTHING), each.changes)
    gone = [state for state in there if state.uuid in wanted.removed]
    mine = [state for state in gone if applied.get(state.uuid, NOTHING).made]
    mine.sort(key=lambda state: _depth(state, present), reverse=True)
    writes += [PlannedWrite(state.uuid, DeleteProvider(state.uuid), {}) for state in mine]
    return Plan(tuple(writes), before, ahead, frozenset(state.uuid for state in gone if state not in mine))


def _writes(
    provider: ToldProvider, own: AppliedProvider, there: ProviderState | None
) -> Iterator[PlannedWrite]:
    """The writes to one provider that stays."""
    uuid, name, parent = provider.uuid, provider.name, provider.parent
    if there is None:
        # What was applied of one that somebody has deleted since is gone with it.
        yield PlannedWrite(uuid, CreateProvider(uuid, name, parent), {**_FRESH, "made": True})
        there = ProviderState(uuid=uuid, name=name, parent=parent, generation=0)
    elif provider.is_placed and (there.name, there.parent) != (name, parent):
        yield PlannedWrite(uuid, MoveProvider(uuid, name, parent), {})
    at = there.generation
    if provider.inventory is not None:
        present = there.inventories
        for inventories, changes in _inventory_stages(provider.inventory, own, present):
            write = None if inventories == present else SetInventories(uuid, inventories, at)
            present = inventories
            yield PlannedWrite(uuid, write, changes)
    if provider.traits is not None:
        traits, mine = _merged_names(provider.traits, own.traits, there.traits)
        write_traits = None if traits == there.traits else SetTraits(uuid, traits, at)
        yield PlannedWrite(uuid, write_traits, {"traits": mine})
    if provider.aggregates is not None:
        names, mine = _merged_names(provider.aggregates, own.aggregates, there.aggregates)
        write_names = None if names == there.aggregates else SetAggregates(uuid, names, at)
        yield PlannedWrite(uuid, write_names, {"aggregates": mine})


def _merged_names(
    wanted: frozenset[str], own: frozenset[str], there: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The traits or aggregates that a provider gets, and those of them that are the agent's own then."""
    return (there - (own - wanted)) | wanted, wanted - (there - own)


def _inventory_stages(
    wanted: Mapping[str, Inventory], own: AppliedProvider, there: Mapping[str, Inventory]
) -> Iterator[tuple[dict[str, Inventory], dict[str, Any]]]:
    """The inventories that a provider gets, one state after the other, with the changes of what is applied.

    What is dropped is dropped last, by itself: placement refuses it while it is in use, and that must not
    keep the other amounts from being brought up to date.
    """
    told = own.inventories
    merged = {name: _merged(each, told.get(name), there.get(name)) for name, each in wanted.items()}
    dropped = (own.classes & there.keys()) - wanted.keys()
    mine = frozenset(name for name in wanted if name in own.classes or name not in there)
    if dropped:
        still = {name: told[name] for name in dropped if name in told}
        yield {**there, **merged}, {"inventories": {**wanted, **still}, "classes": mine | dropped}
    left = {name: each for name, each in {**there, **merged}.items() if name not in dropped}
    yield left, {"inventories": dict(wanted), "classes": mine}


def _merged(wanted: Inventory, told: Inventory | None, there: Inventory | None) -> Inventory:
    """One inventory. ``told`` is what the driver told last."""
    if there is None:
        return wanted
    reserved, ratio = there.reserved, there.allocation_ratio
    if (told is not None and wanted.reserved != told.reserved) or reserved > wanted.total:
        reserved = wanted.reserved
    if told is not None and wanted.allocation_ratio != told.allocation_ratio:
        ratio = wanted.allocation_ratio
    return msgspec.structs.replace(wanted, reserved=reserved, allocation_ratio=ratio)


def _joined(before: AppliedProvider, changes: Mapping[str, Any]) -> AppliedProvider:
    """What may be the agent's own while a write is under way."""
    after = msgspec.structs.replace(before, **changes)
    return AppliedProvider(
        made=before.made or after.made,
        # The values of before: a write that was not made must not count as told.
        inventories={**after.inventories, **before.inventories},
        classes=before.classes | after.classes,
        traits=before.traits | after.traits,
        aggregates=before.aggregates | after.aggregates,
    )


def _depth(state: ProviderState, present: Mapping[str, ProviderState]) -> int:
    depth = 0
    while state.parent is not None and state.parent in present:
        state = present[state.parent]
        depth += 1
    return depth
