"""The audit snapshot: the state of the ledger as plain facts, read row by row for verification.

A fleet refuses tables that contradict themselves, which is right for a service and useless for an audit. An
audit snapshot takes all rows and reports those that make no sense.
"""

from collections import Counter, defaultdict
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger import tables
from roost.ledger.errors import Damaged
from roost.ledger.facts import (
    AGGREGATES,
    ANNOUNCED,
    CLASS,
    CONSUMER,
    GENERATION,
    INVENTORIES,
    KINDS,
    PROVIDER,
    TRAIT,
    TRAITS,
    WORD,
    Assignments,
    Facts,
    Holding,
    Members,
    ProviderIdentity,
    put,
)
from roost.ledger.findings import (
    ASSIGNMENT_UNREADABLE,
    BROKEN_REFERENCE,
    EMPTY_CONSUMER,
    OUT_OF_RANGE,
    PARENT_LOOP,
    Finding,
)
from roost.ledger.holdings import assignment_from_text
from roost.model.allocation import Allocations, Consumer
from roost.model.assignment import Assignment
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT


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
