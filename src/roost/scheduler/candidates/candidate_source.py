"""Candidate sources: the hosts that placement offers for a request, and their allocation candidates.

`FleetCandidates` reads the fleet itself, `FetchedCandidates` an answer of ``GET /allocation_candidates``;
both count the claims of the run.

The host of a candidate: a candidate of a tree takes something from the tree itself; the rest may come from
sharing providers. A candidate that takes everything from sharing providers belongs to no host: placement
answers it once, whatever trees it could serve, so no scheduler can assign it to a host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int64
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.outstanding import NOTHING, unreported
from roost.scheduler.nodes.table import NodeTable

Positions = npt.NDArray[np.intp]
"""Positions in the arrays of a `CandidateSource`."""

Chosen = Bools | Positions | None
"""Some of the hosts, by a mask or by positions; None for all."""


SHARE_SORTED: Final = 16
"""Of more than one node in so many of the table, the order is chosen from that of all nodes."""


def in_tie_order(table: NodeTable, index: Indexes) -> Positions:
    """Return the positions of some nodes in the order that breaks ties: intp[len(index)]."""
    if SHARE_SORTED * len(index) > table.size:
        # The order of all nodes is kept: to choose from it takes a tenth of the time of sorting.
        position = positions_of(index, table.size)[table.tie_order]
        return position[position >= 0]
    rank = table.tie_rank.take(index)
    if (rank[1:] > rank[:-1]).all():
        return np.arange(len(index))
    return np.argsort(rank, kind="stable")


def positions_of(index: Indexes, size: int) -> Positions:
    """Return the position of each node of the table in ``index``: intp[size], -1 for nodes that are not
    there."""
    position = np.full(size, -1, dtype=np.intp)
    position[index] = np.arange(len(index))
    return position


S = TypeVar("S", bound=np.generic)


class ProviderLevels(NamedTuple):
    """Single providers with a resource class: capacity and use, int64[n] each.

    ``host``: intp[n], the host that each belongs to, as a position in a view.
    """

    host: Positions
    capacity: Int64
    used: Int64


class Totals(Protocol):
    """Capacity and use of whole trees, of the hosts ``index``: intp[n] into the node table."""

    index: Indexes

    def both(self, resource_class: str) -> tuple[Int64, Int64]:
        """Return capacity and use of each host's whole tree: int64[n] each."""

    def free(self, resource_class: str, chosen: Chosen) -> Float64:
        """Return the free amount of some hosts' whole trees: float64[chosen], a new array."""

    def providers(self, resource_class: str) -> ProviderLevels:
        """Return the providers in the hosts' trees with a class, claims made since included."""

    def with_trait(self, trait: str, chosen: Chosen) -> Bools:
        """Return which of some hosts have a provider with a trait in their tree: bool[chosen]."""

    def assigned(self, node: str) -> Assigned:
        """Return the assignments on the node with a root provider, claims made since included."""

    def provider_name(self, provider: str) -> str | None:
        """Return the name of a provider by its uuid, None where placement has not returned it."""


class CandidateSource(ABC):
    """The hosts that placement offers for one request, and their candidates.

    ``index``: intp[n], the hosts in the node table, by `NodeTable.tie_rank`: of hosts with equal weights the
    first is the best. Position i of every array below is host ``index[i]``. Each host has at least one
    candidate to begin with.
    """

    def __init__(self, index: Indexes) -> None:
        self.index = index
        self._totals: dict[str, tuple[Int64, Int64]] = {}

    def capacity(self, resource_class: str) -> Int64:
        """Return the capacity of each host's whole tree: int64[n]."""
        return self.both(resource_class)[0]

    def used(self, resource_class: str) -> Int64:
        """Return the use of each host's whole tree, claims made since included: int64[n]."""
        return self.both(resource_class)[1]

    @abstractmethod
    def candidates(self, position: int) -> Iterator[Candidate]:
        """Yield the host's allocation candidates that still fit, in placement's order."""

    def claimed(self, candidate: Candidate) -> Sequence[int]:
        """Note that a candidate was claimed. Returns the hosts whose trees it takes something from."""
        changed: dict[int, None] = {}
        for provider, resources in candidate.allocations.items():
            for position in self.hosts_of(provider):
                changed[position] = None
                for name, amount in resources.items():
                    if name in self._totals:
                        self._totals[name][1][position] += amount
        return list(changed)

    @abstractmethod
    def providers(self, resource_class: str) -> ProviderLevels:
        """Return the providers in the hosts' trees with a class, claims made since included."""

    @abstractmethod
    def having(self, trait: str) -> Bools:
        """Return the hosts with a provider in their tree that has a trait: bool[n]."""

    def with_trait(self, trait: str, chosen: Chosen) -> Bools:
        """Return which of some hosts have a provider with a trait in their tree: bool[chosen]."""
        having = self.having(trait)
        return having if chosen is None else having[chosen]

    @abstractmethod
    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        """Return capacity and use of one provider, claims made since included; zeros without the class."""

    @abstractmethod
    def hosts_of(self, provider: str) -> Sequence[int]:
        """Return the host in whose tree a provider is, if the source has it."""

    def assigned(self, node: str) -> Assigned:
        """Return the assignments on the node with a root provider, claims made since included."""
        return NOTHING

    def provider_name(self, provider: str) -> str | None:
        """Return the name of a provider by its uuid, None where placement has not returned it."""
        return None

    @abstractmethod
    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        """Return capacity and use of each host's whole tree as placement answered them."""

    def both(self, resource_class: str) -> tuple[Int64, Int64]:
        """Return capacity and use of each host's whole tree, claims made since included: int64[n] each."""
        both = self._totals.get(resource_class)
        if both is None:
            both = self._totals[resource_class] = self._sums(resource_class)
        return both

    def free(self, resource_class: str, chosen: Chosen) -> Float64:
        """Return the free amount of some hosts' whole trees, claims made since included: float64[chosen]."""
        capacity, used = self.both(resource_class)
        if chosen is not None:
            capacity, used = capacity[chosen], used[chosen]
        return np.subtract(capacity, used, dtype=np.float64)


class HostView:
    """Hosts of one decision as filters and weighers see them: parallel arrays of length n.

    ``index``: intp[n] into ``table``. ``chosen``: which of the hosts of ``totals`` these are.
    """

    def __init__(self, table: NodeTable, totals: Totals, chosen: Chosen = None) -> None:
        self.table = table
        self._totals = totals
        self._chosen = chosen
        self.index: Indexes = self._of_these(totals.index)

    def __len__(self) -> int:
        return len(self.index)

    def capacity(self, resource_class: str) -> Int64:
        """Return the capacity of each host's whole tree in a class: int64[n]."""
        return self._of_these(self._totals.both(resource_class)[0])

    def free(self, resource_class: str) -> Float64:
        """Return the free amount of each host's whole tree in a class: float64[n]."""
        return self._totals.free(resource_class, self._chosen)

    def providers(self, resource_class: str) -> ProviderLevels:
        """Return the providers in the hosts' trees that have a class, each with its capacity and use."""
        levels = self._totals.providers(resource_class)
        if self._chosen is None:
            return levels
        here = np.full(len(self._totals.index), -1, dtype=np.intp)
        here[self._chosen] = np.arange(len(self))
        host = here[levels.host]
        ours = host >= 0
        return ProviderLevels(host[ours], levels.capacity[ours], levels.used[ours])

    def with_trait(self, trait: str) -> Bools:
        """Return the hosts with a provider in their tree that has a trait: bool[n]."""
        return self._totals.with_trait(trait, self._chosen)

    def assigned(self, position: int = 0) -> Assigned:
        """Return the assignments on a host that its report does not count: consumer -> assignment.

        The use of the host is its report plus these. Claims of this run are included.
        """
        index = self.index.item(position)
        return unreported(self.table.report(index), self._totals.assigned(self.table.nodes[index]))

    def all_assigned(self, node: str) -> Assigned:
        """Return all assignments on the node with a root provider, those that its report counts included.

        It is the same object until one of them changes, where the ledger is in this process.
        """
        return self._totals.assigned(node)

    def some(self, positions: Positions) -> "HostView":
        """Return the view of some of these hosts, by their positions here."""
        chosen = self._chosen
        if chosen is None:
            return HostView(self.table, self._totals, positions)
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return HostView(self.table, self._totals, places[positions])

    def _of_these(self, column: npt.NDArray[S]) -> npt.NDArray[S]:
        return column if self._chosen is None else column[self._chosen]


class OneHost(HostView):
    """One host, for plugins that look at its allocation candidates. ``name``: of the host in the table.

    ``level`` returns capacity and use of one provider that its candidates name, by uuid and resource class,
    such as one GPU. ``provider_name`` returns the name of a provider by its uuid, None where placement has
    not returned it.
    """

    def __init__(
        self,
        table: NodeTable,
        totals: Totals,
        position: int,
        level: Callable[[str, str], tuple[int, int]],
    ) -> None:
        super().__init__(table, totals, np.array([position], dtype=np.intp))
        self.name = table.hosts[self.index.item(0)]
        self.level = level
        self.provider_name = totals.provider_name
