"""The candidate source of an answer of ``GET /allocation_candidates``; answers that serve for some seconds.

Reading all candidates from a placement service costs more than the rest of a decision. Where hosts change
slowly, an answer that is some seconds old is good enough: placement judges each claim anyway.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Int64
from roost.fleet.fits import has_room
from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.interface import AllocationRequest, InventoryUsage, ProviderSummary
from roost.scheduler.candidates.candidate_source import CandidateSource, ProviderLevels
from roost.scheduler.nodes.outstanding import NOTHING
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Outcome

_NOTHING = InventoryUsage(0, 0)


class FetchedCandidates(CandidateSource):
    """An answer of placement, less the claims made since.

    An allocation request does not name its tree. It is for each tree that it takes something from, if
    everything that it takes elsewhere is from sharing providers. (Where a host is a sharing provider itself,
    that may include a tree that the others do not share with: the answer does not say.)

    ``only``: the index of the one host to include.
    """

    def __init__(
        self,
        requests: Iterable[AllocationRequest],
        summaries: Mapping[str, ProviderSummary],
        table: NodeTable,
        only: int | None = None,
    ) -> None:
        self._summaries = summaries
        self._assigned: Callable[[str], Assigned] = lambda node: NOTHING
        self._used: dict[tuple[str, str], int] = {}
        self._root = {uuid: summary.root_provider_uuid or uuid for uuid, summary in summaries.items()}
        by_root: dict[str, list[AllocationRequest]] = {}
        for request in requests:
            for root in self._trees_of(request):
                by_root.setdefault(root, []).append(request)
        indexes = {root: table.index_of_node(root) for root in sorted(by_root)}
        hosts = {
            root: index for root, index in indexes.items() if index is not None and only in (None, index)
        }
        self._offered = [(root, by_root[root]) for root in hosts]
        self._places = self._places_of(self._offered)
        super().__init__(np.array([*hosts.values()], dtype=np.intp))

    def candidates(self, position: int) -> Iterator[Candidate]:
        root, requests = self._offered[position]
        return (
            Candidate(root, request.allocations, request.mappings)
            for request in requests
            if self._still_fits(request)
        )

    def claimed(self, candidate: Candidate) -> Sequence[int]:
        for provider, resources in candidate.allocations.items():
            for name, amount in resources.items():
                self._used[provider, name] = self._level(provider, name).used + amount
        return super().claimed(candidate)

    def providers(self, resource_class: str) -> ProviderLevels:
        columns = np.array(self._levels(resource_class), dtype=np.int64).reshape(-1, 3)
        return ProviderLevels(columns[:, 0], columns[:, 1], columns[:, 2])

    def having(self, trait: str) -> Bools:
        having = np.zeros(len(self.index), dtype=np.bool_)
        for provider, summary in self._summaries.items():
            if trait in summary.traits:
                having[list(self.hosts_of(provider))] = True
        return having

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        level = self._level(provider, resource_class)
        return level.capacity, level.used

    def beside(self, assigned: Callable[[str], Assigned]) -> "FetchedCandidates":
        """Return the same candidates for a run that reads the assignments on a node by ``assigned``."""
        other = copy(self)
        other._assigned = assigned
        return other

    def apart(self, assigned: Callable[[str], Assigned], only: int | None = None) -> "FetchedCandidates":
        """Return the same candidates for decisions that are taken back: their claims count there alone.

        ``only``: the index of the one host to include.
        """
        other = self.beside(assigned)
        other._used, other._totals = self._used.copy(), {}
        if only is not None:
            places = np.flatnonzero(self.index == only).tolist()
            other.index = self.index[places]
            other._offered = [self._offered[place] for place in places]
            other._places = self._places_of(other._offered)
            named = {provider for _, of in other._offered for each in of for provider in each.providers}
            other._summaries = {
                provider: summary
                for provider, summary in self._summaries.items()
                if provider in named or provider in other._places
            }
        return other

    def assigned(self, node: str) -> Assigned:
        return self._assigned(node)

    def hosts_of(self, provider: str) -> Sequence[int]:
        position = self._places.get(provider)
        return () if position is None else (position,)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        capacity, used = ([0] * len(self.index), [0] * len(self.index))
        for position, its_capacity, its_use in self._levels(resource_class):
            capacity[position] += its_capacity
            used[position] += its_use
        within = [min(each, CAPACITY_LIMIT) for each in capacity]
        return np.array(within, dtype=np.int64), np.array(used, dtype=np.int64)

    def _places_of(self, offered: Sequence[tuple[str, object]]) -> dict[str, int]:
        """Return the position of the host of each provider in the hosts' trees."""
        places = {root: position for position, (root, _) in enumerate(offered)}
        below = {provider: places[root] for provider, root in self._root.items() if root in places}
        return {**places, **below}

    def _levels(self, resource_class: str) -> list[tuple[int, int, int]]:
        """Return position, capacity and use of each provider in the hosts' trees that has a class."""
        places, claimed = self._places, self._used
        return [
            (
                places[provider],
                level.capacity,
                claimed.get((provider, resource_class), level.used) if claimed else level.used,
            )
            for provider, summary in self._summaries.items()
            if (level := summary.resources.get(resource_class)) is not None and provider in places
        ]

    def _trees_of(self, request: AllocationRequest) -> list[str]:
        """Return the roots of the trees that an allocation request is for."""
        # Most requests take everything from one provider, or from one tree.
        if len(request.providers) == 1:
            return [self._root.get(provider, provider) for provider in request.providers]
        root_of = {provider: self._root.get(provider, provider) for provider in request.providers}
        trees = list(dict.fromkeys(root_of.values()))
        if len(trees) == 1:
            return trees
        bound = {root for provider, root in root_of.items() if not self._shares(provider)}
        return [tree for tree in trees if bound <= {tree}]

    def _shares(self, provider: str) -> bool:
        summary = self._summaries.get(provider)
        return summary is not None and SHARING_TRAIT in summary.traits

    def _level(self, provider: str, resource_class: str) -> InventoryUsage:
        """Return capacity and use of a provider in a class, our claims included."""
        summary = self._summaries.get(provider)
        level = _NOTHING if summary is None else summary.resources.get(resource_class, _NOTHING)
        used = self._used.get((provider, resource_class))
        return level if used is None else InventoryUsage(level.capacity, used)

    def _still_fits(self, request: AllocationRequest) -> bool:
        if not self._used:
            return True
        # Placement has judged the units; only our own claims can have changed the use since.
        for provider, resources in request.allocations.items():
            for name, amount in resources.items() if provider in self._summaries else ():
                level = self._level(provider, name)
                if not has_room(amount, level.capacity - level.used):
                    return False
        return True


MOST_ANSWERS = 64
"""Answers kept; one more drops the oldest."""

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class _Answer(msgspec.Struct):
    candidates: FetchedCandidates
    structure: int
    until: float


class CachedAnswers:
    """The answers of the last ``host_list_seconds``, by query; with 0 seconds none is kept.

    The claims of this process are taken off all answers. An answer is dropped when a claim based on it was
    refused, or when its run placed nothing.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer] = {}

    def of(self, request: SchedulingRequest, table: NodeTable) -> FetchedCandidates | None:
        """Return the answer to a request's queries; None if placement must be read."""
        if not request.options.host_list_seconds:
            return None
        answer = self._answers.get(_encode(request.queries))
        if answer is None or answer.structure != table.structure or answer.until <= request.monotonic():
            return None
        return answer.candidates

    def keep(self, request: SchedulingRequest, table: NodeTable, candidates: FetchedCandidates) -> None:
        """Keep an answer that was read just now."""
        seconds = request.options.host_list_seconds
        if not seconds:
            return
        key = _encode(request.queries)
        self._answers.pop(key, None)
        self._answers[key] = _Answer(candidates, table.structure, request.monotonic() + seconds)
        if len(self._answers) > MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]

    def decided(self, request: SchedulingRequest, outcome: Outcome | None) -> None:
        """Note the outcome of a run on an answer; None: it raised."""
        if not self._answers:
            return
        key = _encode(request.queries)
        refused = outcome is None or any(tried.refusal is not None for tried in outcome.tries)
        if outcome is None or refused or not outcome.destinations:
            self._answers.pop(key, None)
        for one in outcome.destinations if outcome is not None else ():
            selected = one.selected
            candidate = Candidate(selected.node, selected.allocations, selected.mappings)
            for other, answer in self._answers.items():
                if other != key:
                    answer.candidates.claimed(candidate)
