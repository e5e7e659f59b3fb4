"""The candidate source of reported amounts: the nodes that have room for a query by their own reports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from roost.fleet.columns import Bools, Int64
from roost.fleet.fits import fits, has_room
from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.model.allocation import Allocations, Candidate
from roost.model.node import NOTHING, NodeReport, amounts_of
from roost.model.request import CandidateQuery
from roost.scheduler.candidates.candidate_source import (
    CandidateSource,
    ProviderLevels,
    in_tie_order,
    positions_of,
)
from roost.scheduler.nodes.table import NodeTable

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
"""The resource classes whose amounts nodes report."""


class ReportedColumns:
    """Capacity, use and size of each node by its index: int64[table.size] for each of `CLASSES`.

    A node that does not report a class has nothing of it. ``largest``: the most that one instance may have,
    which is the amount of the machine without allocation ratio.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._seen = 0
        self.capacity: dict[str, Int64] = {}
        self.used: dict[str, Int64] = {}
        self.largest: dict[str, Int64] = {}

    def catch_up(self) -> None:
        """Read the reports that have changed."""
        table = self._table
        log = table.invalidations
        changed = log.since(self._seen) if self._structure == table.structure else None
        if changed is None:
            for columns in (self.capacity, self.used, self.largest):
                columns.update({name: np.zeros(table.size, dtype=np.int64) for name in CLASSES})
            changed = set(range(table.size))
        for index in changed:
            report = table.report(index)
            if table.index_of_node(report.node) == index:
                self._set(index, report)
        self._structure, self._seen = table.structure, log.end

    def _set(self, index: int, report: NodeReport) -> None:
        amounts = amounts_of(report)
        for name in CLASSES:
            of_it = amounts.get(name, NOTHING)
            self.largest[name][index] = of_it.total
            self.capacity[name][index] = min(of_it.capacity, CAPACITY_LIMIT)
            self.used[name][index] = of_it.total - of_it.reserved - of_it.free


class ReportedCandidates(CandidateSource):
    """The nodes with room, as they report it, less ``pending``: claims that no report includes yet.

    Of a query, amounts of `CLASSES`, aggregates and the wanted tree are judged. Nodes report no traits: none
    meets a required trait, all meet a forbidden one. ``only``: the index of the one node to include.
    """

    def __init__(
        self,
        query: CandidateQuery,
        table: NodeTable,
        columns: ReportedColumns,
        pending: Iterable[Allocations],
        only: int | None = None,
    ) -> None:
        self._table = table
        self._amounts = query.resources
        self._suffixes = [group.suffix for group in query.groups]
        self._columns = columns
        extra: dict[tuple[int, str], int] = {}
        for allocations in pending:
            for node, resources in allocations.items():
                index = table.index_of_node(node)
                if index is None:
                    continue
                for name, amount in resources.items():
                    extra[index, name] = extra.get((index, name), 0) + amount
        self._extra = extra
        served = self._served(query)
        if only is not None:
            served &= np.arange(len(served)) == only
        found = np.flatnonzero(served)
        super().__init__(found[in_tie_order(table, found)])
        self._position = positions_of(self.index, table.size)

    def candidates(self, position: int) -> Iterator[Candidate]:
        for name, amount in self._amounts.items():
            capacity, used = self.both(name)
            if not has_room(amount, capacity.item(position) - used.item(position)):
                return
        node = self._table.nodes[self.index.item(position)]
        yield Candidate(node, {node: dict(self._amounts)}, {suffix: [node] for suffix in self._suffixes})

    def providers(self, resource_class: str) -> ProviderLevels:
        capacity, used = self.both(resource_class)
        return ProviderLevels(np.arange(len(self.index)), capacity, used)

    def having(self, trait: str) -> Bools:
        return np.zeros(len(self.index), dtype=np.bool_)

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        for position in self.hosts_of(provider):
            capacity, used = self.both(resource_class)
            return capacity.item(position), used.item(position)
        return 0, 0

    def hosts_of(self, provider: str) -> Sequence[int]:
        index = self._table.index_of_node(provider)
        position = -1 if index is None else self._position.item(index)
        return () if position < 0 else (position,)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        if resource_class not in CLASSES:
            return np.zeros(len(self.index), dtype=np.int64), np.zeros(len(self.index), dtype=np.int64)
        used = self._used(resource_class)
        return self._columns.capacity[resource_class][self.index], used[self.index]

    def _used(self, resource_class: str) -> Int64:
        """Return the use of each node, pending claims included: int64[table.size], a new array."""
        used = self._columns.used[resource_class].copy()
        for (index, name), amount in self._extra.items():
            if name == resource_class:
                used[index] += amount
        return used

    def _served(self, query: CandidateQuery) -> Bools:
        """Return the nodes that can serve a query: bool[table.size]."""
        table = self._table
        served: Bools = np.zeros(table.size, dtype=np.bool_)
        if not served_classes(query) or traits_of(query):
            return served
        served[[index for index in map(table.index_of_node, table.nodes) if index is not None]] = True
        for name, amount in self._amounts.items():
            columns = self._columns
            served &= fits(amount, self._used(name), columns.capacity[name], 1, columns.largest[name], 1)
        for group in query.groups:
            if group.in_tree is not None:
                wanted = table.index_of_node(group.in_tree)
                served &= np.arange(table.size) == (-1 if wanted is None else wanted)
            if group.member_of or group.forbidden_aggregates:
                for index in np.flatnonzero(served).tolist():
                    inside = {each.uuid for each in table.aggregates(index)}
                    meets = all(any_of & inside for any_of in group.member_of)
                    served[index] = meets and not group.forbidden_aggregates & inside
        return served


def served_classes(query: CandidateQuery) -> bool:
    """Return whether nodes report all resource classes of a query."""
    return set(query.resources) <= set(CLASSES)


def traits_of(query: CandidateQuery) -> frozenset[str]:
    """Return the traits that a query requires."""
    of_groups = (any_of for group in query.groups for any_of in group.required)
    return query.root_required.union(*of_groups)


def amounts_text(resources: Mapping[str, int]) -> str:
    """Return amounts as a text, as in ``VCPU=2, MEMORY_MB=2048``."""
    return ", ".join(f"{name}={amount}" for name, amount in resources.items())
