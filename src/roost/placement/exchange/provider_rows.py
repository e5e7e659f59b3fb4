"""Reads names and providers from an OpenStack Placement database."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.findings import BROKEN_REFERENCE, PARENT_LOOP
from roost.model.change import ProviderFacts
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT, is_custom, standard_resource_classes, standard_traits
from roost.placement.exchange import anomalies
from roost.placement.exchange import placement_tables as rows
from roost.placement.exchange.copy_commands import CopiedProvider
from roost.placement.exchange.provider_trees import arrange_trees
from roost.placement.exchange.report import ExchangeReport
from roost.storage import one_of

PROVIDERS_PER_BATCH = 500
"""Providers whose rows are read by one set of queries."""

_PROVIDER = rows.resource_providers.c
_PROVIDERS = sa.select(_PROVIDER.id, _PROVIDER.name, _PROVIDER.generation, _PROVIDER.root_provider_id).where(
    one_of(_PROVIDER.id, "ids")
)
_INVENTORY = rows.inventories.c
_INVENTORIES = sa.select(
    _INVENTORY.resource_provider_id,
    _INVENTORY.resource_class_id,
    _INVENTORY.total,
    _INVENTORY.reserved,
    _INVENTORY.min_unit,
    _INVENTORY.max_unit,
    _INVENTORY.step_size,
    _INVENTORY.allocation_ratio,
).where(one_of(_INVENTORY.resource_provider_id, "ids"))
_PROVIDER_TRAIT = rows.provider_traits.c
_TRAITS = sa.select(_PROVIDER_TRAIT.resource_provider_id, _PROVIDER_TRAIT.trait_id).where(
    one_of(_PROVIDER_TRAIT.resource_provider_id, "ids")
)
_MEMBERSHIP = rows.provider_aggregates.c
_AGGREGATES = sa.select(_MEMBERSHIP.resource_provider_id, _MEMBERSHIP.aggregate_id).where(
    one_of(_MEMBERSHIP.resource_provider_id, "ids")
)


class Names:
    """The names of resource classes, traits, aggregates and providers, by the ids of their rows.

    A row that cannot be kept has no entry, so that references to it are left out.
    """

    def __init__(self, connection: Connection, report: ExchangeReport) -> None:
        self._connection = connection
        self._report = report
        self.classes = self._vocabulary(rows.resource_classes, standard_resource_classes())
        self.traits = self._vocabulary(rows.traits, standard_traits())
        self.aggregates = self._aggregates()
        self.parents: dict[int, int | None] = {}
        self.providers: dict[int, str] = {}
        for row, uuid, parent in connection.execute(
            sa.select(_PROVIDER.id, _PROVIDER.uuid, _PROVIDER.parent_provider_id)
        ):
            if self._usable(f"resource provider {uuid}", uuid):
                self.providers[row], self.parents[row] = uuid, parent

    def _vocabulary(self, table: sa.Table, standard: Sequence[str]) -> dict[int, str]:
        names: dict[int, str] = {}
        for row, name in self._connection.execute(sa.select(table.c.id, table.c.name).order_by(table.c.id)):
            what = f"{table.name} {row}"
            names[row] = anomalies.shortened(name, rows.NAME_LIMIT, what, self._report)
            if name not in standard and not is_custom(name):
                detail = f"{name!r} is neither a standard name nor of the form CUSTOM_[A-Z0-9_]+; kept"
                self._report.add(anomalies.ODD_NAME, what, detail)
        return names

    def _aggregates(self) -> dict[int, str]:
        table = rows.placement_aggregates
        names: dict[int, str] = {}
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for row, uuid in self._connection.execute(sa.select(table.c.id, table.c.uuid).order_by(table.c.id)):
            if uuid is None:
                detail = "it has no uuid; left out"
                self._report.add(anomalies.ODD_UUID, f"aggregate with id {row}", detail)
            elif self._usable(f"aggregate {uuid}", uuid):
                names[row] = uuid
                spellings[anomalies.canonical(uuid)].append(uuid)
        for uuid, spelled in spellings.items():
            if len(spelled) > 1:
                detail = f"several aggregates have it as {', '.join(sorted(spelled))}; all are kept"
                self._report.add(anomalies.DUPLICATE_AGGREGATE, f"aggregate {uuid}", detail)
        return names

    def _usable(self, what: str, uuid: str) -> bool:
        if len(uuid) > anomalies.UUID_LIMIT:
            self._report.add(
                anomalies.ODD_UUID, what, f"more than {anomalies.UUID_LIMIT} characters; left out"
            )
            return False
        if not anomalies.is_canonical(uuid):
            self._report.add(anomalies.ODD_UUID, what, "not a lower-case UUID with dashes; kept")
        return True


class ProviderReader:
    """Reads the providers of a snapshot, parents before their children."""

    def __init__(self, connection: Connection, names: Names, report: ExchangeReport) -> None:
        self._connection = connection
        self._names = names
        self._report = report
        self._trees = arrange_trees(names.parents)

    def read(self) -> Iterator[list[CopiedProvider]]:
        """Yield all providers, `PROVIDERS_PER_BATCH` at a time."""
        self._report_broken_trees()
        order = self._trees.order
        for first in range(0, len(order), PROVIDERS_PER_BATCH):
            yield self._some(order[first : first + PROVIDERS_PER_BATCH])
        self._report_strays()

    def _some(self, ids: Sequence[int]) -> list[CopiedProvider]:
        about = {row.id: row for row in self._rows(_PROVIDERS, ids)}
        inventories: defaultdict[int, dict[str, Inventory]] = defaultdict(dict)
        for row, class_id, *record in self._rows(_INVENTORIES, ids):
            subject = f"inventory of class {class_id} of resource provider {self._names.providers[row]}"
            name = self._named(self._names.classes, "resource class", class_id, subject)
            if name is not None:
                inventory = self._inventory(subject, record)
                if inventory is not None:
                    inventories[row][name] = inventory
        traits = self._names_by_provider(_TRAITS, ids, self._names.traits, "trait")
        aggregates = self._names_by_provider(_AGGREGATES, ids, self._names.aggregates, "aggregate")
        return [
            CopiedProvider(
                uuid=self._names.providers[row],
                facts=self._facts(about[row]),
                inventories=inventories.get(row, {}),
                traits=tuple(sorted(set(traits[row]))),
                aggregates=tuple(sorted(set(aggregates[row]))),
            )
            for row in ids
        ]

    def _facts(self, row: Any) -> ProviderFacts:
        uuid = self._names.providers[row.id]
        subject = f"resource provider {uuid}"
        name = row.name
        if name is None:
            self._report.add(anomalies.ODD_NAME, subject, "it has no name; kept with its uuid as its name")
            name = uuid
        elif len(name) > rows.PROVIDER_NAME_LIMIT:
            # The uuid keeps apart names that differ only beyond the limit.
            anomalies.shortened(name, rows.PROVIDER_NAME_LIMIT, subject, self._report)
            name = f"{name[: rows.PROVIDER_NAME_LIMIT - len(uuid) - 1]}~{uuid}"
        if row.generation is None:
            self._report.add(anomalies.NO_GENERATION, subject, "it has no generation; kept with 0")
        root = self._names.providers[self._trees.roots[row.id]]
        if row.root_provider_id != self._trees.roots[row.id]:
            recorded = self._names.providers.get(row.root_provider_id, row.root_provider_id or "none")
            detail = f"its recorded root is {recorded}, the root of its tree is {root}; the latter is kept"
            self._report.add(anomalies.NO_ROOT, subject, detail)
        parent = self._trees.parents.get(row.id)
        return ProviderFacts(
            name, None if parent is None else self._names.providers[parent], row.generation or 0
        )

    def _inventory(self, subject: str, record: Sequence[Any]) -> Inventory | None:
        *amounts, ratio = record
        inventory = None
        whole = all(isinstance(amount, int) and abs(amount) <= MAX_INT for amount in amounts)
        if whole and isinstance(ratio, (int, float)) and math.isfinite(ratio):
            total, reserved, min_unit, max_unit, step_size = amounts
            if total >= 1 and reserved >= 0 and step_size >= 1:
                inventory = Inventory(total, reserved, min_unit, max_unit, step_size, float(ratio))
        if inventory is None or min(amounts[2:]) < 1 or inventory.capacity < 0:
            values = "total {}, reserved {}, min_unit {}, max_unit {}, step_size {}, allocation_ratio {}"
            done = "left out" if inventory is None else "kept"
            self._report.add(anomalies.ODD_INVENTORY, subject, f"{values.format(*record)}; {done}")
        return inventory

    def _names_by_provider(
        self, query: sa.Select[Any], ids: Sequence[int], names: Mapping[int, str], kind: str
    ) -> defaultdict[int, list[str]]:
        found: defaultdict[int, list[str]] = defaultdict(list)
        for row, number in self._rows(query, ids):
            subject = f"{kind} {number} of resource provider {self._names.providers[row]}"
            name = self._named(names, kind, number, subject)
            if name is not None:
                found[row].append(name)
        return found

    def _named(self, names: Mapping[int, str], kind: str, number: int, subject: str) -> str | None:
        name = names.get(number)
        if name is None:
            self._report.add(BROKEN_REFERENCE, subject, f"there is no {kind} with this id; left out")
        return name

    def _report_broken_trees(self) -> None:
        names = self._names.providers
        for row in self._trees.orphans:
            detail = f"its parent (id {self._names.parents[row]}) does not exist; kept as a root"
            self._report.add(BROKEN_REFERENCE, f"resource provider {names[row]}", detail)
        for loop in self._trees.loops:
            loop_text = " under ".join(names[row] for row in [*loop, loop[0]])
            detail = f"it is its own ancestor: {loop_text}; kept as a root"
            self._report.add(PARENT_LOOP, f"resource provider {names[loop[0]]}", detail)

    def _report_strays(self) -> None:
        """Report rows whose provider does not exist or is left out."""
        for kind, row, other in (
            ("inventory of class", _INVENTORY.resource_provider_id, _INVENTORY.resource_class_id),
            ("trait", _PROVIDER_TRAIT.resource_provider_id, _PROVIDER_TRAIT.trait_id),
            ("aggregate", _MEMBERSHIP.resource_provider_id, _MEMBERSHIP.aggregate_id),
        ):
            stray = (
                sa.select(row, other)
                .outerjoin(rows.resource_providers, _PROVIDER.id == row)
                .where(sa.or_(_PROVIDER.id.is_(None), sa.func.length(_PROVIDER.uuid) > anomalies.UUID_LIMIT))
            )
            for provider, number in self._connection.execute(stray):
                subject = f"{kind} {number} of resource provider with id {provider}"
                self._report.add(
                    BROKEN_REFERENCE, subject, "this provider does not exist or is left out; left out"
                )

    def _rows(self, query: sa.Select[Any], ids: Sequence[int]) -> Sequence[Any]:
        return self._connection.execute(query, {"ids": list(ids)}).all()
