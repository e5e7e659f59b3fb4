"""The three-way merge of a node's providers: as last applied, as the driver wants, as placement has them.

The agent changes its own parts and adds missing ones. Child providers, traits, aggregates and resource
classes of others stay. In an inventory, total, min_unit, max_unit and step_size are facts of the host and
always the driver's. ``reserved`` and ``allocation_ratio`` may be set by an operator: the driver's value is
written only where it differs from the one that the driver reported last. Where that one is not known, the
present ratio stays, and the larger reserve counts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

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
from roost.agent.tree_provider import DesiredProvider
from roost.model.inventory import Inventory


class AppliedProvider(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent's own part of one provider.

    ``made``: the agent created it. ``classes``, ``traits`` and ``aggregates``: the ones that it added.
    ``inventories``: the last inventories that its driver reported, also of classes that others have added.
    """

    made: bool = False
    inventories: dict[str, Inventory] = {}
    classes: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


Applied = dict[str, AppliedProvider]
"""The agent's own part of each provider, by the provider's uuid."""

NOTHING = AppliedProvider()


_FRESH = msgspec.structs.asdict(NOTHING)


class PlannedWrite(NamedTuple):
    """A write, and the fields of the provider's `AppliedProvider` that it changes.

    ``write`` None: nothing is sent, as placement has what the driver wants. ``otherwise``: the write that is
    made instead if placement refuses this one.
    """

    provider: str
    write: ProviderWrite | None
    changes: Mapping[str, Any]
    otherwise: "PlannedWrite | None" = None

    def take(self, applied: Applied) -> None:
        """Record in ``applied`` that the write is made."""
        if isinstance(self.write, DeleteProvider):
            applied.pop(self.provider, None)
        else:
            before = applied.get(self.provider, NOTHING)
            applied[self.provider] = msgspec.structs.replace(before, **self.changes)


class Plan(NamedTuple):
    """The writes that bring placement in line with the driver.

    ``before``: the applied providers, without those that are neither present nor wanted. ``ahead``: the same
    with everything that the writes add. An agent that stores it before it writes never takes its own
    additions for those of others. ``kept``: the uuids of providers that the driver removed and that stay
    because others made them.
    """

    writes: tuple[PlannedWrite, ...]
    before: Applied
    ahead: Applied
    kept: frozenset[str]

    def changes_nothing(self, applied: Applied) -> bool:
        """Return whether nothing is to be sent, and nothing to be stored beside what is applied already."""
        if self.ahead != applied or any(each.write is not None for each in self.writes):
            return False
        after = dict(self.before)
        for each in self.writes:
            each.take(after)
        return after == applied

    def without(self, providers: Collection[str]) -> "Plan":
        """Return the plan without the writes to some providers."""
        return self._replace(writes=tuple(each for each in self.writes if each.provider not in providers))


def plan(
    applied: Mapping[str, AppliedProvider], wanted: ProviderTree, there: Sequence[ProviderState]
) -> Plan:
    """Plan the writes. Their order matters: parents before children, deletions last.

    ``there``: the providers of placement from which ``wanted`` was made.
    """
    present = {state.uuid: state for state in there}
    before = {uuid: each for uuid, each in applied.items() if uuid in present or uuid in wanted}
    ahead = dict(before)
    writes: list[PlannedWrite] = []
    for provider in wanted.desired():
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
    provider: DesiredProvider, own: AppliedProvider, there: ProviderState | None
) -> Iterator[PlannedWrite]:
    """Yield the writes to one provider that stays."""
    uuid, name, parent = provider.uuid, provider.name, provider.parent
    if there is None:
        # If it existed and somebody has deleted it, the parts that the agent applied are gone with it.
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
    """Return the traits or aggregates that a provider gets, and the agent's own among them."""
    return (there - (own - wanted)) | wanted, wanted - (there - own)


def _inventory_write(
    provider: DesiredProvider, wanted: Mapping[str, Inventory], own: AppliedProvider, there: ProviderState
) -> PlannedWrite:
    """Return the write of a provider's inventories.

    Placement refuses to drop a class that is in use, and the whole write with it. Then ``otherwise`` updates
    the other classes alone.
    """
    present, reported = there.inventories, own.inventories
    mine = frozenset(name for name in wanted if name in own.classes or name not in present)
    dropped = (own.classes & present.keys()) - wanted.keys()
    if not dropped and _is_reported_there(wanted, provider.fields, present):
        known = {
            name: _with(reported.get(name, each), each, provider.fields[name])
            for name, each in wanted.items()
        }
        return PlannedWrite(provider.uuid, None, {"inventories": known, "classes": mine})

    def write(sent: dict[str, Inventory], otherwise: PlannedWrite | None, **changes: Any) -> PlannedWrite:
        made = None if sent == present else SetInventories(provider.uuid, sent, there.generation)
        return PlannedWrite(provider.uuid, made, changes, otherwise)

    merged = {name: _merged(each, reported.get(name), present.get(name)) for name, each in wanted.items()}
    both = {**present, **merged}
    after = {name: each for name, each in both.items() if name not in dropped}
    still = {name: reported[name] for name in dropped if name in reported}
    kept = write(both, None, inventories={**wanted, **still}, classes=mine | dropped) if dropped else None
    return write(after, kept, inventories=dict(wanted), classes=mine)


def _with(reported: Inventory, record: Inventory, fields: frozenset[str]) -> Inventory:
    """Return the inventory that a driver reported last, with the fields of a record that it reports now."""
    return msgspec.structs.replace(reported, **{field: getattr(record, field) for field in fields})


def _is_reported_there(
    wanted: Mapping[str, Inventory], fields: Mapping[str, frozenset[str]], present: Mapping[str, Inventory]
) -> bool:
    """Return whether placement has all that a driver reports. A field that a record lacks is no change.

    Source: ``has_inventory_changed`` of Nova's ``compute/provider_tree.py``.
    """
    return wanted.keys() <= present.keys() and all(
        getattr(each, field) == getattr(present[name], field)
        for name, each in wanted.items()
        for field in fields[name]
    )


def _merged(wanted: Inventory, reported: Inventory | None, there: Inventory | None) -> Inventory:
    """Merge one inventory. ``reported``: as the driver reported it last."""
    if there is None:
        return wanted
    reserved, ratio = there.reserved, there.allocation_ratio
    if reported is None:
        # Set by an agent before this one, or by an operator: neither one's reserve is given away.
        reserved = max(reserved, wanted.reserved)
    elif wanted.reserved != reported.reserved:
        reserved = wanted.reserved
    if reserved > wanted.total:
        reserved = wanted.reserved
    if reported is not None and wanted.allocation_ratio != reported.allocation_ratio:
        ratio = wanted.allocation_ratio
    return msgspec.structs.replace(wanted, reserved=reserved, allocation_ratio=ratio)


def _joined(before: AppliedProvider, changes: Mapping[str, Any]) -> AppliedProvider:
    """Return all that may be the agent's own while a write is under way."""
    after = msgspec.structs.replace(before, **changes)
    return AppliedProvider(
        made=before.made or after.made,
        # The values from before: a write that was not made must not count as reported.
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
