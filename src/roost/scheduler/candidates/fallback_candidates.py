"""The candidates of several queries, of which any may be served."""

from collections.abc import Iterator, Sequence

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Int64
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned
from roost.scheduler.candidates.candidate_source import (
    CandidateSource,
    ProviderLevels,
    in_tie_order,
    positions_of,
)
from roost.scheduler.candidates.fleet_candidates import FleetCandidates
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest


def fleet_candidates(
    fleet: Fleet, request: SchedulingRequest, table: NodeTable, only: int | None = None
) -> CandidateSource:
    """Return the candidate source of a request on a fleet. ``only``: the index of the one node to include."""
    source: CandidateSource = FleetCandidates(fleet, request.query, table, only=only)
    for query in request.fallbacks:
        source = FallbackCandidates(table, source, FleetCandidates(fleet, query, table, only=only))
    return source


class FallbackCandidates(CandidateSource):
    """The hosts of two candidate sources. A host's candidates are those of the first, then those of the
    second.

    A request for dedicated processors asks for PCPU, and for VCPU of hosts that do not offer PCPU yet. With
    more than two queries the first source is such a pair itself.
    """

    def __init__(self, table: NodeTable, first: CandidateSource, second: CandidateSource) -> None:
        index = np.union1d(first.index, second.index)
        super().__init__(index[in_tie_order(table, index)])
        self._parts = (first, second)
        # By index of the node: its position here and in each part, -1 where it is not.
        self._position = positions_of(self.index, table.size)
        self._in_parts = [positions_of(part.index, table.size) for part in self._parts]

    def candidates(self, position: int) -> Iterator[Candidate]:
        host = self.index.item(position)
        for part, position_in in zip(self._parts, self._in_parts, strict=True):
            if (place := position_in.item(host)) >= 0:
                yield from part.candidates(place)

    def providers(self, resource_class: str) -> ProviderLevels:
        first, second = self._parts
        places = [self._position[part.index] for part in self._parts]
        one, other = first.providers(resource_class), second.providers(resource_class)
        # The providers of a host in both sources are read from the first.
        new = ~np.isin(second.index, first.index)[other.host]
        return ProviderLevels(
            np.concatenate((places[0][one.host], places[1][other.host[new]])),
            np.concatenate((one.capacity, other.capacity[new])),
            np.concatenate((one.used, other.used[new])),
        )

    def having(self, trait: str) -> Bools:
        found = np.zeros(len(self.index), dtype=np.bool_)
        for part in self._parts:
            found[self._position[part.index]] = part.having(trait)
        return found

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        return max(part.level(provider, resource_class) for part in self._parts)

    def provider_name(self, provider: str) -> str | None:
        return self._parts[0].provider_name(provider)

    def assigned(self, node: str) -> Assigned:
        return self._parts[0].assigned(node)

    def hosts_of(self, provider: str) -> Sequence[int]:
        hosts = {part.index.item(place) for part in self._parts for place in part.hosts_of(provider)}
        return sorted(self._position.item(host) for host in hosts)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        capacity, used = np.zeros((2, len(self.index)), dtype=np.int64)
        for part in self._parts:
            places = self._position[part.index]
            capacity[places], used[places] = part.both(resource_class)
        return capacity, used
