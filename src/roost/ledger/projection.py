"""The projection: from the changes of a commit to rows to insert, update and delete in the tables.

Only the net effect is written: if fifty claims of one commit raise a provider by fifty generations, that is
one update. There is one statement for each table and kind, in an order that foreign keys allow: children are
deleted first and inserted last.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.fleet import Fleet
from roost.ledger import tables
from roost.ledger.bulk import Bulk, Row, bulk_delete, bulk_insert, bulk_update
from roost.ledger.holdings import assignment_text
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
    WordAnnounced,
)

IDS_OF_A_COMMIT = 2**24
"""Range of ids that a commit may give to consumers, more than any needs. It allows 2**39 commits."""

Key = tuple[Any, ...]
Statement = tuple[Bulk, list[Row]]


class _Net:
    """The net effect on one table: for each key whether the row exists, and the row after the commit."""

    def __init__(self, table: sa.Table) -> None:
        keys = [column.name for column in table.primary_key]
        values = [column.name for column in table.columns if column.name not in keys]
        self.insert = bulk_insert(table)
        self.update = bulk_update(table, keys, values)
        self.delete = bulk_delete(table, keys)
        self.keys = keys
        self.values = values

    def statements(
        self, effects: dict[Key, tuple[bool, Row | None]]
    ) -> tuple[Statement, Statement, Statement]:
        """Return deletes, updates and inserts. ``effects``: by key if the row existed, and its values."""
        deletes: list[Row] = []
        updates: list[Row] = []
        inserts: list[Row] = []
        for key, (was, row) in effects.items():
            if row is None:
                if was:
                    deletes.append({f"key_{name}": part for name, part in zip(self.keys, key, strict=True)})
            elif not was:
                inserts.append(row)
            elif self.values:  # a row without other columns than its key needs no update
                named = {f"key_{name}": part for name, part in zip(self.keys, key, strict=True)}
                updates.append({**row, **named})
        return (self.delete, deletes), (self.update, updates), (self.insert, inserts)


# Parents before children, so that inserts go in this order and deletes in the opposite one.
_TABLES = {
    table.name: _Net(table)
    for table in (
        tables.resource_classes,
        tables.traits,
        tables.resource_providers,
        tables.inventories,
        tables.provider_traits,
        tables.provider_aggregates,
        tables.consumers,
        tables.allocations,
        tables.operator_word,
    )
}
_GENERATIONS = bulk_update(tables.resource_providers, ["id"], ["generation", "changed_at"])


class ConsumerIds:
    """The ids of consumers in the tables: ``known`` ones, and the ones that commit ``seq`` gives.

    An id is derived from the commit that gives it and from its place there. So ids are unique without a
    query, whichever replica a commit comes from.
    """

    def __init__(self, known: dict[str, int], seq: int) -> None:
        self._ids = known
        self._next = seq * IDS_OF_A_COMMIT

    def of(self, consumer: str, is_new: bool) -> int:
        """Return a consumer's id. ``is_new``: whether the consumer is created, and gets its id now.

        Raises: `LookupError` for a consumer that exists and was not read; its rows could not be found.
        """
        number = self._ids.get(consumer)
        if number is None:
            if not is_new:
                raise LookupError(f"the id of consumer {consumer} is not known")
            number = self._ids[consumer] = self._next
            self._next += 1
        return number


def project(fleet: Fleet, changes: Iterable[Change], at: float, ids: ConsumerIds) -> list[Statement]:
    """Return the statements that bring the tables from the head to the state after ``changes``.

    ``fleet`` gives the rows of providers, the ids of names, and the generations of providers that the changes
    leave out. It must be at the head; if the changes neither add, remove nor rename anything, it may include
    them. Statements without rows are left out. ``at``: time of the commit, seconds since the epoch.

    Raises: `LookupError` if ``ids`` lacks a consumer that exists.
    """
    return list(_Projection(fleet, at, ids).statements(changes))


class _Projection:
    def __init__(self, fleet: Fleet, at: float, ids: ConsumerIds) -> None:
        self._fleet = fleet
        self._at = at
        self._ids = ids
        self._rows: dict[str, int] = {}
        self._class_ids: dict[str, int] = {}
        self._trait_ids: dict[str, int] = {}
        self._effects: dict[str, dict[Key, tuple[bool, Row | None]]] = {name: {} for name in _TABLES}
        self._generations: dict[int, int] = {}

    def statements(self, changes: Iterable[Change]) -> Iterator[Statement]:
        for change in changes:
            self._note(change)
        parts = {name: net.statements(self._effects[name]) for name, net in _TABLES.items()}
        ordered: list[Statement] = [parts[name][0] for name in reversed(_TABLES)]
        ordered += [parts[name][1] for name in _TABLES]
        ordered += [parts[name][2] for name in _TABLES]
        ordered.append(
            (
                _GENERATIONS,
                [
                    {"key_id": row, "generation": generation, "changed_at": self._at}
                    for row, generation in self._generations.items()
                ],
            )
        )
        return (statement for statement in ordered if statement[1])

    def _note(self, change: Change) -> None:
        match change:
            case AllocationsChanged():
                self._note_allocations(change)
            case GenerationChanged():
                self._touch(self._row(change.provider), change.after)
            case ProviderChanged():
                self._note_provider(change)
            case InventoryChanged():
                row = self._touched(change.provider)
                for name in change.before.keys() | change.after.keys():
                    class_id = self._class_id(name)
                    inventory = change.after.get(name)
                    self._set(
                        "inventories",
                        (row, class_id),
                        name in change.before,
                        None
                        if inventory is None
                        else {
                            "provider_id": row,
                            "resource_class_id": class_id,
                            **msgspec.structs.asdict(inventory),
                        },
                    )
            case TraitsChanged():
                row = self._touched(change.provider)
                for name in set(change.before) ^ set(change.after):
                    trait = self._trait_id(name)
                    having = {"provider_id": row, "trait_id": trait} if name in change.after else None
                    self._set("provider_traits", (row, trait), name in change.before, having)
            case AggregatesChanged():
                row = self._touched(change.provider)
                for name in set(change.before) ^ set(change.after):
                    inside: Row | None = (
                        {"provider_id": row, "aggregate_uuid": name} if name in change.after else None
                    )
                    self._set("provider_aggregates", (row, name), name in change.before, inside)
            case ResourceClassChanged():
                self._note_name("resource_classes", self._class_ids, change)
            case TraitChanged():
                self._note_name("traits", self._trait_ids, change)
            case WordAnnounced():
                word: Row | None = {"id": 1, "mark": change.after} if change.after else None
                self._set("operator_word", (1,), change.before != 0, word)

    def _note_allocations(self, change: AllocationsChanged) -> None:
        consumer = self._ids.of(change.consumer, change.before is None)
        owner = change.after
        self._set(
            "consumers",
            (consumer,),
            change.before is not None,
            None
            if owner is None
            else {
                "id": consumer,
                "uuid": change.consumer,
                "project_id": owner.project_id,
                "user_id": owner.user_id,
                "consumer_type": owner.consumer_type,
                "generation": owner.generation,
                "changed_at": self._at,
                "server_group": owner.group,
                "assignment": assignment_text(owner.assignment),
            },
        )
        for provider, resources in change.held.items():
            row = self._row(provider)
            kept = change.holds.get(provider, {})
            for name in resources:
                if name not in kept:
                    self._set("allocations", (consumer, row, self._class_id(name)), True, None)
        for provider, resources in change.holds.items():
            row = self._row(provider)
            had = change.held.get(provider, {})
            for name, used in resources.items():
                if had.get(name) != used:
                    class_id = self._class_id(name)
                    self._set(
                        "allocations",
                        (consumer, row, class_id),
                        name in had,
                        {
                            "consumer_id": consumer,
                            "provider_id": row,
                            "resource_class_id": class_id,
                            "used": used,
                        },
                    )

    def _touched(self, provider: str) -> int:
        """Return the row of a provider whose inventories, traits or aggregates change; it is updated too."""
        row = self._row(provider)
        if row not in self._generations and (row,) not in self._effects["resource_providers"]:
            self._touch(row, self._fleet.generation.item(row))
        return row

    def _touch(self, row: int, generation: int) -> None:
        written = self._effects["resource_providers"].get((row,))
        if written is not None and written[1] is not None:
            written[1]["generation"] = generation
        else:
            self._generations[row] = generation

    def _note_provider(self, change: ProviderChanged) -> None:
        facts = change.after
        self._rows[change.provider] = change.row
        self._generations.pop(change.row, None)
        self._set(
            "resource_providers",
            (change.row,),
            change.before is not None,
            None
            if facts is None
            else {
                "id": change.row,
                "uuid": change.provider,
                "name": facts.name,
                "parent_id": None if facts.parent is None else self._row(facts.parent),
                "generation": facts.generation,
                "changed_at": self._at,
            },
        )

    def _note_name(
        self, table: str, ids: dict[str, int], change: ResourceClassChanged | TraitChanged
    ) -> None:
        number = change.after if change.after is not None else change.before
        if number is None:
            return
        ids[change.name] = number
        there = None if change.after is None else {"id": number, "name": change.name}
        self._set(table, (number,), change.before is not None, there)

    def _set(self, table: str, key: Key, was: bool, row: Row | None) -> None:
        effects = self._effects[table]
        first = effects.pop(key, None)
        # The first effect on a key tells whether the row existed; the last one gives its place in the order.
        effects[key] = (first[0] if first is not None else was, row)

    def _row(self, uuid: str) -> int:
        row = self._rows.get(uuid)
        return self._fleet.row(uuid) if row is None else row

    def _class_id(self, name: str) -> int:
        number = self._class_ids.get(name)
        return self._fleet.resource_classes[name] if number is None else number

    def _trait_id(self, name: str) -> int:
        number = self._trait_ids.get(name)
        return self._fleet.traits[name] if number is None else number
