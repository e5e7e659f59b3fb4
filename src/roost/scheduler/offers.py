"""Offers: the hosts that placement says could take a request, and what claims take from them.

Two sources, one shape: the fleet itself, or the answer of ``GET /allocation_candidates``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Float64, Int32
from roost.fleet.fits import fits
from roost.fleet.totals import tree_totals
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT
from roost.scheduler.hosts import HostTable


class Offers(Protocol):
    """What placement offers for one request.

    ``index``: int32[n], ascending, the hosts in the host table. Position i of every array below is host
    ``index[i]``.
    """

    index: Int32

    def capacity(self, resource_class: str) -> Float64:
        """Capacity of each host's whole tree: float64[n]."""

    def used(self, resource_class: str) -> Float64:
        """Use of each host's whole tree, claims made since included: float64[n]."""

    def candidates(self, position: int) -> Iterator[Candidate]:
        """The host's allocation candidates that still fit."""

    def claimed(self, position: int, candidate: Candidate) -> None:
        """Take note that a candidate was claimed."""


class FleetOffers:
    """Offers straight from the fleet. Claims show in it by themselves: they are applied to it."""

    def __init__(
        self,
        fleet: Fleet,
        query: CandidateQuery,
        table: HostTable,
        observe: Callable[[str, int], None],
    ) -> None:
        self._fleet = fleet
        self._search = CandidateSearch(fleet, query, observe)
        rows = self._search.anchors
        index = table.indexes_of_rows(fleet, rows)
        known = index >= 0
        order = np.argsort(index[known], kind="stable")
        self.index = index[known][order]
        self._rows = rows[known][order]
        self._totals: dict[str, tuple[Float64, Float64]] = {}

    def capacity(self, resource_class: str) -> Float64:
        return self._both(resource_class)[0]

    def used(self, resource_class: str) -> Float64:
        return self._both(resource_class)[1]

    def candidates(self, position: int) -> Iterator[Candidate]:
        for candidate in self._search.at(int(self._rows[position])):
            if self._still_fits(candidate):
                yield candidate

    def claimed(self, position: int, candidate: Candidate) -> None:
        fleet = self._fleet
        for provider, resources in candidate.allocations.items():
            root = fleet.root.item(fleet.row(provider))
            # A sharing provider may stand in the tree of another host.
            places = [position] if root == self._rows[position] else np.flatnonzero(self._rows == root)
            for name, amount in resources.items():
                if name in self._totals:
                    self._totals[name][1][places] += amount

    def _both(self, resource_class: str) -> tuple[Float64, Float64]:
        if resource_class not in self._totals:
            capacity, used = tree_totals(self._fleet, resource_class, self._rows)
            self._totals[resource_class] = capacity.astype(np.float64), used.astype(np.float64)
        return self._totals[resource_class]

    def _still_fits(self, candidate: Candidate) -> bool:
        fleet = self._fleet
        for provider, resources in candidate.allocations.items():
            row = fleet.row(provider)
            for name, amount in resources.items():
                stock = fleet.stock(name)
                if not stock.fits_at(stock.slot(row), amount):
                    return False
        return True


class ProviderSummary:
    """One provider of ``provider_summaries``: its root's uuid, and [capacity, used] of each class."""

    __slots__ = ("resources", "root")

    def __init__(self, root: str, resources: Mapping[str, tuple[int, int]]) -> None:
        self.root = root
        self.resources = {name: list(both) for name, both in resources.items()}


class AnsweredOffers:
    """Offers from an answer of ``GET /allocation_candidates``, kept up to date by the claims made since."""

    def __init__(
        self, requests: Iterable[Candidate], summaries: Mapping[str, ProviderSummary], table: HostTable
    ) -> None:
        self._summaries = summaries
        by_host: dict[int, list[Candidate]] = {}
        for candidate in requests:
            index = table.index_of_node(candidate.root)
            if index is not None:
                by_host.setdefault(index, []).append(candidate)
        hosts = sorted(by_host)
        self.index = np.array(hosts, dtype=np.int32)
        self._candidates = [by_host[host] for host in hosts]
        self._position = {table.nodes[host]: position for position, host in enumerate(hosts)}
        self._totals: dict[str, tuple[Float64, Float64]] = {}

    def capacity(self, resource_class: str) -> Float64:
        return self._both(resource_class)[0]

    def used(self, resource_class: str) -> Float64:
        return self._both(resource_class)[1]

    def candidates(self, position: int) -> Iterator[Candidate]:
        return (candidate for candidate in self._candidates[position] if self._still_fits(candidate))

    def claimed(self, position: int, candidate: Candidate) -> None:
        for provider, resources in candidate.allocations.items():
            summary = self._summaries[provider]
            for name, amount in resources.items():
                summary.resources[name][1] += amount
                place = self._position.get(summary.root)
                if place is not None and name in self._totals:
                    self._totals[name][1][place] += amount

    def _both(self, resource_class: str) -> tuple[Float64, Float64]:
        if resource_class not in self._totals:
            capacity, used = np.zeros(len(self.index)), np.zeros(len(self.index))
            for summary in self._summaries.values():
                position = self._position.get(summary.root)
                both = summary.resources.get(resource_class)
                if position is not None and both is not None:
                    capacity[position] += both[0]
                    used[position] += both[1]
            self._totals[resource_class] = capacity, used
        return self._totals[resource_class]

    def _still_fits(self, candidate: Candidate) -> bool:
        # Placement has judged the units; only the use can have changed since, by our own claims.
        return all(
            fits(amount, used, capacity, 1, MAX_INT, 1)
            for provider, resources in candidate.allocations.items()
            for name, amount in resources.items()
            for capacity, used in [self._summaries[provider].resources[name]]
        )


class HostView:
    """Hosts in play for one decision, for filters and weighers: parallel arrays of length n.

    ``index``: int32[n] into ``table``.
    """

    def __init__(self, table: HostTable, offers: Offers, playing: Bools | None = None) -> None:
        self.table = table
        self._offers = offers
        self._playing = playing
        self.index = offers.index if playing is None else offers.index[playing]

    def __len__(self) -> int:
        return len(self.index)

    def free(self, resource_class: str) -> Float64:
        """What each host's whole tree has left of a class: float64[n]."""
        free = self._offers.capacity(resource_class) - self._offers.used(resource_class)
        return free if self._playing is None else free[self._playing]
