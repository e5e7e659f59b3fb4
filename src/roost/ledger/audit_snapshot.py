"""The audit snapshot: the state of the ledger as plain facts, read row by row for verification.

A fleet refuses tables that contradict themselves, which is right for a service and useless for an audit. An
audit snapshot takes all rows and reports those that make no sense.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger import tables
from roost.ledger.assignment_text import assignment_from_text
from roost.ledger.errors import Damaged
from roost.ledger.findings import (
    ASSIGNMENT_UNREADABLE,
    BROKEN_REFERENCE,
    EMPTY_CONSUMER,
    OUT_OF_RANGE,
    PARENT_LOOP,
    Finding,
)
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
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT

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


class AuditSnapshot:
    """The facts of the tables.

    ``changed_at``: the time of each provider and consumer, by kind and uuid. ``used``: sums of the
    allocations, by provider and class. ``members``: the providers of each member of a server group, by group
    and consumer. ``assigned``: the assignments on each node.
    """

    def __init__(self) -> None:
        self.facts: Facts = {kind: {} for kind in KINDS}
        self.changed_at: dict[tuple[str, str], float] = {}
        self.used: Counter[tuple[str, str]] = Counter()
        self.members: Members = {}
        self.assigned: Assignments = {}

    def put(self, kind: str, name: str, fact: Any) -> None:
        """Set a fact; None removes it."""
        put(self.facts, kind, name, fact)


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


def read_audit_snapshot(connection: Connection) -> tuple[AuditSnapshot, list[Finding]]:
    """Read the audit snapshot of the tables, with a finding for each row that makes no sense.

    The connection's transaction must see one snapshot.
    """
    reading = _Reading(connection)
    reading.names()
    reading.providers()
    reading.inventories_and_sets()
    reading.consumers()
    return reading.snapshot, reading.findings


class _Reading:
    """Translates ids into names. A row that refers to a missing row is a finding, and is left out."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._classes: dict[int, str] = {}
        self._traits: dict[int, str] = {}
        self._uuids: dict[int, str] = {}
        self.snapshot = AuditSnapshot()
        self.findings: list[Finding] = []

    def names(self) -> None:
        for row in self._rows(tables.resource_classes):
            self._classes[row.id] = row.name
            self.snapshot.put(CLASS, row.name, row.id)
        for row in self._rows(tables.traits):
            self._traits[row.id] = row.name
            self.snapshot.put(TRAIT, row.name, row.id)
        for row in self._rows(tables.operator_word):
            self.snapshot.put(WORD, ANNOUNCED, row.mark)

    def providers(self) -> None:
        rows = self._rows(tables.resource_providers)
        self._uuids.update({row.id: row.uuid for row in rows})
        for row in rows:
            if row.id > MAX_INT:
                self._find(OUT_OF_RANGE, f"id of {PROVIDER} {row.uuid}", f"{row.id} is more than {MAX_INT}")
            parent = None
            if row.parent_id is not None:
                parent = self._named(f"{PROVIDER} {row.uuid}", "parent", row.parent_id, self._uuids)
            self.snapshot.put(PROVIDER, row.uuid, ProviderIdentity(row.id, row.name, parent))
            self.snapshot.put(GENERATION, row.uuid, row.generation)
            self.snapshot.changed_at[PROVIDER, row.uuid] = row.changed_at
        self._find_loops()

    def inventories_and_sets(self) -> None:
        inventories: defaultdict[str, dict[str, Inventory]] = defaultdict(dict)
        for row_id, class_id, *record in self._rows(tables.inventories):
            found = self._provider_and(f"inventory of class {class_id}", row_id, class_id, self._classes)
            if found is not None:
                inventory = inventories[found[0]][found[1]] = Inventory(*record)
                for name, value in msgspec.structs.asdict(inventory).items():
                    if name != "allocation_ratio" and abs(value) > MAX_INT:
                        subject = f"{name} of {found[1]} of {PROVIDER} {found[0]}"
                        self._find(OUT_OF_RANGE, subject, f"{value} is more than {MAX_INT}")
        having: defaultdict[str, list[str]] = defaultdict(list)
        for row_id, trait_id in self._rows(tables.provider_traits):
            found = self._provider_and(f"trait {trait_id}", row_id, trait_id, self._traits)
            if found is not None:
                having[found[0]].append(found[1])
        inside: defaultdict[str, list[str]] = defaultdict(list)
        for row_id, aggregate in self._rows(tables.provider_aggregates):
            uuid = self._named(f"aggregate {aggregate} of provider {row_id}", PROVIDER, row_id, self._uuids)
            if uuid is not None:
                inside[uuid].append(aggregate)
        self.snapshot.facts[INVENTORIES].update(inventories)
        for kind, lists in ((TRAITS, having), (AGGREGATES, inside)):
            self.snapshot.facts[kind].update({uuid: tuple(sorted(names)) for uuid, names in lists.items()})

    def consumers(self) -> None:
        owners = self._rows(tables.consumers)
        uuids = {row.id: row.uuid for row in owners}
        held: defaultdict[str, Allocations] = defaultdict(dict)
        for consumer_id, row_id, class_id, amount in self._rows(tables.allocations):
            consumer = uuids.get(consumer_id, f"with id {consumer_id}")
            what = f"allocation of consumer {consumer}, class {class_id}"
            found = self._provider_and(what, row_id, class_id, self._classes)
            if found is not None:
                held[consumer].setdefault(found[0], {})[found[1]] = amount
                self.snapshot.used[found] += amount
        for row in owners:
            owner = Consumer(
                row.uuid,
                row.project_id,
                row.user_id,
                row.generation,
                row.consumer_type,
                row.server_group,
                self._assignment(row.uuid, row.assignment),
            )
            if owner.assignment is not None:
                self.snapshot.assigned.setdefault(owner.assignment.node, {})[row.uuid] = owner.assignment
            if owner.group is not None and held.get(row.uuid):
                self.snapshot.members[owner.group, row.uuid] = tuple(sorted(held[row.uuid]))
            self.snapshot.put(CONSUMER, row.uuid, Holding(owner, held.pop(row.uuid, {})))
            self.snapshot.changed_at[CONSUMER, row.uuid] = row.changed_at
            if not self.snapshot.facts[CONSUMER][row.uuid].allocations:
                self._find(EMPTY_CONSUMER, f"{CONSUMER} {row.uuid}", "holds nothing, and should not be there")
        for consumer, allocations in sorted(held.items()):
            self._find(BROKEN_REFERENCE, f"{CONSUMER} {consumer}", f"is not there, but holds {allocations}")

    def _assignment(self, consumer: str, text: str | None) -> Assignment | None:
        try:
            return assignment_from_text(consumer, text)
        except Damaged as error:
            self._find(ASSIGNMENT_UNREADABLE, f"{CONSUMER} {consumer}", str(error))
            return None

    def _find_loops(self) -> None:
        providers = self.snapshot.facts[PROVIDER]
        ends: set[str] = set()
        for start in sorted(providers):
            path: dict[str, None] = {}
            at: str | None = start
            while at is not None and at not in ends and at not in path:
                path[at] = None
                at = providers[at].parent
            if at in path:
                loop = list(path)[list(path).index(at) :]
                self._find(PARENT_LOOP, f"{PROVIDER} {at}", f"is below itself: {' under '.join([*loop, at])}")
            ends.update(path)

    def _provider_and(
        self, what: str, row_id: int, other: int, names: dict[int, str]
    ) -> tuple[str, str] | None:
        kind = TRAIT if names is self._traits else CLASS
        uuid = self._named(f"{what} on provider {row_id}", PROVIDER, row_id, self._uuids)
        name = self._named(f"{what} on provider {row_id}", kind, other, names)
        return None if uuid is None or name is None else (uuid, name)

    def _named(self, what: str, kind: str, number: int, names: dict[int, str]) -> str | None:
        name = names.get(number)
        if name is None:
            self._find(BROKEN_REFERENCE, what, f"names {kind} {number}, which is not there")
        return name

    def _find(self, kind: str, subject: str, detail: str) -> None:
        self.findings.append(Finding(kind, subject, detail))

    def _rows(self, table: sa.Table) -> list[sa.Row[*tuple[Any, ...]]]:
        return list(self._connection.execute(sa.select(table)))


def _identity(row: int, facts: ProviderFacts | None) -> ProviderIdentity | None:
    return None if facts is None else ProviderIdentity(row, facts.name, facts.parent)


def _holding(consumer: Consumer | None, allocations: Allocations) -> Holding | None:
    return None if consumer is None and not allocations else Holding(consumer, allocations)
