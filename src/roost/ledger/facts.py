"""Facts: the state of the ledger as plain values by kind and name, for verification.

A fleet, the tables and each change are told in the same facts, so that they can be compared.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from roost.fleet import Fleet
from roost.model.allocation import Allocations, Consumer
from roost.model.assignment import Assignment
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
    WordAnnounced,
)

PROVIDER = "resource provider"
GENERATION = "generation of resource provider"
INVENTORIES = "inventories of resource provider"
TRAITS = "traits of resource provider"
AGGREGATES = "aggregates of resource provider"
CLASS = "resource class"
TRAIT = "trait"
WORD = "operator's word"
CONSUMER = "consumer"
ANNOUNCED = "the newest"
"""The name of the one fact of the kind `WORD`."""
FLEET_KINDS = (PROVIDER, GENERATION, INVENTORIES, TRAITS, AGGREGATES, CLASS, TRAIT, WORD)
KINDS = (*FLEET_KINDS, CONSUMER)

Facts = dict[str, dict[str, Any]]
"""Facts by kind and name. Things that do not exist, and empty ones, have no entry."""


Assignments = dict[str, dict[str, Assignment]]
"""The uuid of a node's root provider -> consumer -> its assignment there."""


Members = dict[tuple[str, str], tuple[str, ...]]
"""Server group and consumer -> the uuids of the providers that the consumer takes from, sorted."""


class ProviderIdentity(NamedTuple):
    """The fact of a resource provider: its row, its name, and its parent's uuid."""

    row: int
    name: str
    parent: str | None


class Holding(NamedTuple):
    """The fact of a consumer: its owner and its allocations."""

    consumer: Consumer | None
    allocations: Allocations


class Side(NamedTuple):
    """One fact before and after a change; None: the thing does not exist."""

    kind: str
    name: str
    before: Any
    after: Any


def put(facts: Facts, kind: str, name: str, fact: Any) -> None:
    """Set a fact; None removes it."""
    if fact is None:
        facts[kind].pop(name, None)
    else:
        facts[kind][name] = fact


def sides(change: Change) -> Iterator[Side]:
    """Yield the facts that a change changes, each before and after it."""
    match change:
        case ProviderChanged():
            name, before, after = change.provider, change.before, change.after
            yield Side(PROVIDER, name, _identity(change.row, before), _identity(change.row, after))
            yield Side(
                GENERATION,
                name,
                None if before is None else before.generation,
                None if after is None else after.generation,
            )
        case GenerationChanged():
            yield Side(GENERATION, change.provider, change.before, change.after)
        case InventoryChanged():
            yield Side(INVENTORIES, change.provider, change.before or None, change.after or None)
        case TraitsChanged():
            yield Side(TRAITS, change.provider, change.before or None, change.after or None)
        case AggregatesChanged():
            yield Side(AGGREGATES, change.provider, change.before or None, change.after or None)
        case AllocationsChanged():
            yield Side(
                CONSUMER,
                change.consumer,
                _holding(change.before, change.held),
                _holding(change.after, change.holds),
            )
        case ResourceClassChanged():
            yield Side(CLASS, change.name, change.before, change.after)
        case TraitChanged():
            yield Side(TRAIT, change.name, change.before, change.after)
        case WordAnnounced():
            yield Side(WORD, ANNOUNCED, change.before or None, change.after or None)


def named_by(change: Change) -> tuple[str, str] | None:
    """Return the kind and the uuid of the thing whose time a change sets; None: of no row."""
    match change:
        case AllocationsChanged():
            return CONSUMER, change.consumer
        case ResourceClassChanged() | TraitChanged() | WordAnnounced():
            return None
    return PROVIDER, change.provider


def facts_of(fleet: Fleet) -> Facts:
    """Return the facts of a fleet: all kinds except consumers, which a fleet does not hold."""
    facts: Facts = {kind: {} for kind in KINDS}
    facts[CLASS].update(fleet.resource_classes)
    facts[TRAIT].update(fleet.traits)
    put(facts, WORD, ANNOUNCED, fleet.word or None)
    for row in fleet.rows().tolist():
        uuid, about = fleet.uuid(row), fleet.facts(row)
        put(facts, PROVIDER, uuid, _identity(row, about))
        put(facts, GENERATION, uuid, about.generation)
        put(facts, INVENTORIES, uuid, fleet.inventories(row) or None)
        put(facts, TRAITS, uuid, fleet.traits_of(row) or None)
        put(facts, AGGREGATES, uuid, fleet.aggregates_of(row) or None)
    return facts


def used_in(fleet: Fleet) -> dict[tuple[str, str], int]:
    """Return the amounts in use according to a fleet, by provider uuid and resource class; without zeros."""
    return {
        (fleet.uuid(row), name): amount
        for row in fleet.rows().tolist()
        for name, amount in fleet.usages(row).items()
        if amount
    }


def members_in(fleet: Fleet) -> Members:
    """Return the members of server groups according to a fleet."""
    return {
        (group, consumer): tuple(sorted(fleet.uuid(row) for row in rows))
        for group in fleet.groups.names()
        for consumer, rows in fleet.groups.providers(group).items()
    }


def assigned_in(fleet: Fleet) -> Assignments:
    """Return the assignments according to a fleet."""
    return {node: dict(fleet.assigned.on(node)) for node in fleet.assigned.nodes()}


def differences(ours: Facts, theirs: Facts, kinds: Iterable[str]) -> Iterator[Side]:
    """Yield the facts of ``kinds`` that differ: ``before`` is from ``ours``, ``after`` from ``theirs``."""
    for kind in kinds:
        for name in sorted(ours[kind].keys() | theirs[kind].keys()):
            one, other = ours[kind].get(name), theirs[kind].get(name)
            if one != other:
                yield Side(kind, name, one, other)


def _identity(row: int, facts: ProviderFacts | None) -> ProviderIdentity | None:
    return None if facts is None else ProviderIdentity(row, facts.name, facts.parent)


def _holding(consumer: Consumer | None, allocations: Allocations) -> Holding | None:
    return None if consumer is None and not allocations else Holding(consumer, allocations)
