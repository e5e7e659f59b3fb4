"""The candidate source of the fleet itself."""

from collections.abc import Iterator, Sequence

import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Int64
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned
from roost.model.request import CandidateQuery
from roost.scheduler.candidates.candidate_source import CandidateSource, ProviderLevels, in_tie_order
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.nodes.tree_providers import providers_of, that_fit, with_trait


class FleetCandidates(CandidateSource):
    """The present candidates of the fleet. The caller applies a claim to the fleet before it calls `claimed`.

    ``only``: the index of the one host to include.
    """

    def __init__(
        self, fleet: Fleet, query: CandidateQuery, table: NodeTable, only: int | None = None
    ) -> None:
        self._fleet = fleet
        self._search = CandidateSearch.cached(fleet, query)
        rows = self._search.local_anchors()
        index = table.indexes_of_rows(fleet, rows)
        if len(index) and int(index.min()) < 0:
            in_table = index >= 0
            rows, index = rows[in_table], index[in_table]
        if only is not None:
            wanted = index == only
            rows, index = rows[wanted], index[wanted]
        order = in_tie_order(table, index)
        self._rows = rows[order]
        super().__init__(index[order])

    def candidates(self, position: int) -> Iterator[Candidate]:
        anchor = self._rows.item(position)
        search = self._search
        return that_fit(self._fleet, search.local_at(anchor), lambda: search.splits_at(anchor))

    def providers(self, resource_class: str) -> ProviderLevels:
        return providers_of(self._fleet, self._rows, resource_class)

    def having(self, trait: str) -> Bools:
        return with_trait(self._fleet, self._rows, trait)

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        columns = self._fleet.inventory_columns(resource_class)
        slot = columns.slot(self._fleet.row(provider))
        return (columns.capacity.item(slot), columns.used.item(slot)) if slot >= 0 else (0, 0)

    def assigned(self, node: str) -> Assigned:
        return self._fleet.assigned.on(node)

    def provider_name(self, provider: str) -> str | None:
        return self._fleet.name(self._fleet.row(provider))

    def hosts_of(self, provider: str) -> Sequence[int]:
        root = self._fleet.root.item(self._fleet.row(provider))
        found: list[int] = np.flatnonzero(self._rows == root).tolist()
        return found

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        return self._fleet.tree_totals(resource_class, self._rows)
