"""The three-way merge of a node's providers: what was last applied, what the driver wants, what is there.

The agent changes what it made, and adds what is missing. What others made stays: child providers, traits,
aggregates, resource classes. Of an inventory total, min_unit, max_unit and step_size are facts of the host,
which the driver tells. ``reserved`` and ``allocation_ratio`` may be set by an operator: the driver's value is
written where the driver tells another one than it told last. Where it is not known what the driver told last,
the ratio that is there stays, and the larger reserve counts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from roost.agent.applied import NOTHING, Applied, AppliedProvider
from roost.agent.protocol.types import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    ProviderState,
    ProviderWrite,
    SetAggregates,
    SetInventories,
    SetTraits,
)
from roost.agent.provider_tree import ProviderTree
from roost.agent.tree_provider import ToldProvider
from roost.model.inventory import Inventory

_FRESH = msgspec.structs.asdict(NOTHING)


class PlannedWrite(NamedTuple):
    """A write, and the fields of what is applied of its provider that it changes.

    ``write`` None: nothing is to be sent, as placement has what the driver wants. ``otherwise``: what is to
    be written where placement refuses it.
    """

    provider: str
    write: ProviderWrite | None
    changes: Mapping[str, Any]
    otherwise: "PlannedWrite | None" = None

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
        yield _inventory_write(provider, provider.inventory, own, there)
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


def _inventory_write(
    provider: ToldProvider, wanted: Mapping[str, Inventory], own: AppliedProvider, there: ProviderState
) -> PlannedWrite:
    """The write of a provider's inventories.

    Placement refuses to drop a class that is in use, and the whole write with it. The other amounts are
    brought up to date then.
    """
    present, told = there.inventories, own.inventories
    mine = frozenset(name for name in wanted if name in own.classes or name not in present)
    dropped = (own.classes & present.keys()) - wanted.keys()
    if not dropped and _is_told_there(wanted, provider.fields, present):
        known = {
            name: _with(told.get(name, each), each, provider.fields[name]) for name, each in wanted.items()
        }
        return PlannedWrite(provider.uuid, None, {"inventories": known, "classes": mine})

    def write(sent: dict[str, Inventory], otherwise: PlannedWrite | None, **changes: Any) -> PlannedWrite:
        made = None if sent == present else SetInventories(provider.uuid, sent, there.generation)
        return PlannedWrite(provider.uuid, made, changes, otherwise)

    merged = {name: _merged(each, told.get(name), present.get(name)) for name, each in wanted.items()}
    both = {**present, **merged}
    after = {name: each for name, each in both.items() if name not in dropped}
    still = {name: told[name] for name in dropped if name in told}
    kept = write(both, None, inventories={**wanted, **still}, classes=mine | dropped) if dropped else None
    return write(after, kept, inventories=dict(wanted), classes=mine)


def _with(told: Inventory, record: Inventory, fields: frozenset[str]) -> Inventory:
    """What a driver has told last, with those fields of a record that it told now."""
    return msgspec.structs.replace(told, **{field: getattr(record, field) for field in fields})


def _is_told_there(
    wanted: Mapping[str, Inventory], fields: Mapping[str, frozenset[str]], present: Mapping[str, Inventory]
) -> bool:
    """Whether placement has all that a driver told. A field that a record lacks is no change then.

    Source: ``has_inventory_changed`` of Nova's ``compute/provider_tree.py``.
    """
    return wanted.keys() <= present.keys() and all(
        getattr(each, field) == getattr(present[name], field)
        for name, each in wanted.items()
        for field in fields[name]
    )


def _merged(wanted: Inventory, told: Inventory | None, there: Inventory | None) -> Inventory:
    """One inventory. ``told`` is what the driver told last."""
    if there is None:
        return wanted
    reserved, ratio = there.reserved, there.allocation_ratio
    if told is None:
        # Of an agent before this one, or of an operator: what either keeps back is not given away.
        reserved = max(reserved, wanted.reserved)
    elif wanted.reserved != told.reserved:
        reserved = wanted.reserved
    if reserved > wanted.total:
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
