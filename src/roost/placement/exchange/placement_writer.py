"""Writes providers and consumers as rows of OpenStack Placement."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger import Held
from roost.ledger.findings import EMPTY_CONSUMER
from roost.model.allocation import UNKNOWN_TYPE
from roost.placement.exchange import anomalies
from roost.placement.exchange import placement_tables as rows
from roost.placement.exchange.placement_target import add_names
from roost.placement.exchange.report import ExchangeReport

PROVIDERS_PER_BATCH = 500
"""Providers whose rows are inserted together."""

Row = dict[str, Any]


class PlacementWriter:
    """Writes the providers of a fleet, and consumers of the same version, within one transaction."""

    def __init__(self, connection: Connection, fleet: Fleet, report: ExchangeReport) -> None:
        self._connection = connection
        self._fleet = fleet
        self._report = report
        # Every row has a time: Placement fails on the last change of a row without one.
        self._now = datetime.now(UTC).replace(tzinfo=None)
        self._classes: dict[str, int] = {}
        self._traits: dict[str, int] = {}
        self._ids = {
            table: _Ids(table, column)
            for table, column in (
                (rows.placement_aggregates, "uuid"),
                (rows.projects, "external_id"),
                (rows.users, "external_id"),
                (rows.consumer_types, "name"),
            )
        }

    def write_names(self) -> None:
        """Insert the resource classes and traits that the target lacks."""
        fleet = self._fleet
        self._classes = add_names(self._connection, rows.resource_classes, fleet.resource_classes, self._now)
        self._traits = add_names(self._connection, rows.traits, fleet.traits, self._now)
        self._report.copied["resource classes"] = len(fleet.resource_classes)
        self._report.copied["traits"] = len(fleet.traits)

    def write_providers(self) -> Iterator[int]:
        """Insert providers with their inventories, traits and aggregates; yield the number of each batch."""
        fleet = self._fleet
        order = [
            row for top in fleet.rows().tolist() if fleet.parent.item(top) < 0 for row in fleet.subtree(top)
        ]
        for first in range(0, len(order), PROVIDERS_PER_BATCH):
            some = order[first : first + PROVIDERS_PER_BATCH]
            self._insert("resource providers", rows.resource_providers, [self._provider(row) for row in some])
            self._insert(
                "inventories", rows.inventories, [each for row in some for each in self._inventories(row)]
            )
            self._insert(
                "provider traits",
                rows.provider_traits,
                [
                    {"resource_provider_id": _id(row), "trait_id": self._traits[name]}
                    for row in some
                    for name in fleet.traits_of(row)
                ],
            )
            aggregates = self._ids[rows.placement_aggregates]
            memberships = [
                {"resource_provider_id": _id(row), "aggregate_id": aggregates.of(uuid)}
                for row in some
                for uuid in fleet.aggregates_of(row)
            ]
            self._add(aggregates)
            self._insert("provider aggregates", rows.provider_aggregates, memberships)
            yield len(some)

    def write_consumers(self, held: list[Held]) -> None:
        """Insert consumers with their allocations."""
        fleet = self._fleet
        written: list[Row] = []
        allocations: list[Row] = []
        for each in held:
            written.append(self._consumer(each))
            allocations += [
                {
                    "consumer_id": each.consumer.uuid,
                    "resource_provider_id": _id(fleet.row(provider)),
                    "resource_class_id": self._classes[name],
                    "used": used,
                }
                for provider, resources in each.allocations.items()
                for name, used in resources.items()
            ]
        for table in (rows.projects, rows.users, rows.consumer_types):
            self._add(self._ids[table])
        self._insert("consumers", rows.consumers, written)
        self._insert("allocations", rows.allocations, allocations)

    def _provider(self, row: int) -> Row:
        fleet = self._fleet
        parent = fleet.parent.item(row)
        return {
            "id": _id(row),
            "uuid": fleet.uuid(row),
            "name": fleet.name(row),
            "generation": fleet.generation.item(row),
            "parent_provider_id": _id(parent) if parent >= 0 else None,
            "root_provider_id": _id(fleet.root.item(row)),
            "updated_at": datetime.fromtimestamp(fleet.changed_at.item(row), UTC).replace(tzinfo=None),
        }

    def _inventories(self, row: int) -> Iterator[Row]:
        for name, inventory in self._fleet.inventories(row).items():
            ratio = inventory.allocation_ratio
            if self._connection.dialect.name in ("mysql", "mariadb") and float(f"{ratio:.6g}") != ratio:
                self._report.add(
                    anomalies.ROUNDED,
                    f"inventory of {name} of resource provider {self._fleet.uuid(row)}",
                    f"allocation_ratio {ratio} is kept with six digits, which is all that its column stores",
                )
            yield {
                "resource_provider_id": _id(row),
                "resource_class_id": self._classes[name],
                **msgspec.structs.asdict(inventory),
            }

    def _consumer(self, held: Held) -> Row:
        consumer = held.consumer
        if not held.allocations:
            self._report.add(EMPTY_CONSUMER, f"consumer {consumer.uuid}", "it has no allocations; kept")
        if consumer.group is not None:
            self._report.add(
                anomalies.NO_GROUPS,
                f"consumer {consumer.uuid}",
                f"kept outside of server group {consumer.group}",
            )
        if consumer.assignment is not None:
            self._report.add(
                anomalies.NO_ASSIGNMENTS,
                f"consumer {consumer.uuid}",
                f"kept without its assignment on node {consumer.assignment.node}",
            )
        kind = None
        if consumer.consumer_type != UNKNOWN_TYPE:
            kind = self._ids[rows.consumer_types].of(consumer.consumer_type)
        return {
            "uuid": consumer.uuid,
            "project_id": self._ids[rows.projects].of(consumer.project_id),
            "user_id": self._ids[rows.users].of(consumer.user_id),
            "consumer_type_id": kind,
            "generation": consumer.generation,
        }

    def _add(self, ids: "_Ids") -> None:
        new = ids.take_new()
        if new:
            self._connection.execute(sa.insert(ids.table), [{"created_at": self._now, **row} for row in new])

    def _insert(self, what: str, table: sa.Table, written: Iterable[Row]) -> None:
        written = [{"created_at": self._now, **row} for row in written]
        if written:
            self._connection.execute(sa.insert(table), written)
            self._report.copied[what] += len(written)


class _Ids:
    """The ids of names, in the order in which the names occur, and the rows that are not written yet."""

    def __init__(self, table: sa.Table, column: str) -> None:
        self.table = table
        self._column = column
        self._ids: dict[str, int] = {}
        self._new: list[Row] = []

    def of(self, name: str) -> int:
        """Return the id of a name. A new name gets the next id."""
        if name not in self._ids:
            self._ids[name] = len(self._ids) + 1
            self._new.append({"id": self._ids[name], self._column: name})
        return self._ids[name]

    def take_new(self) -> list[Row]:
        """Return the rows of the names that are new since the last call."""
        new, self._new = self._new, []
        return new


def _id(row: int) -> int:
    """Return the id of a fleet's row. Rows count from 0, ids from 1."""
    return row + 1
