"""The host pool that begins from a cached equivalence class."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import Numbers
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class CachedPool:
    """A `HostPool` on an up-to-date equivalence class, or on one narrowed for the request.

    The number of a host is its place.
    """

    def __init__(
        self,
        host_index: HostIndex,
        hosts: EquivalenceClass | Narrowed,
        request: SchedulingRequest,
        again: Sequence[tuple[int, Filter]],
        order: CandidateOrder,
        progress: GroupPlacement,
    ) -> None:
        """``again``: the filters of the class that depend on claims, each with the stage of a host that it
        rejects."""
        self._host_index = host_index
        self._order = order
        self._hosts: EquivalenceClass | Narrowed = hosts
        self._request = request
        self._progress = progress
        self._again = again
        self._alone = hosts.feasibility.alone
        self._grouped = request.spec.group is not None
        self._claimed: list[int] = []
        self._touched: set[int] = set()
        self._full: list[int] = []
        self._full_now: list[int] = []
        self._begun = False

    def ready(self) -> list[Step]:
        hosts = self._hosts
        if not self._begun:
            self._begun = True
            return hosts.steps()
        hosts.scores.put_back()
        current = self._host_index.sync(self._request)
        assert current, "a claim has changed which hosts there are"
        rejected = [(place, stage) for place in self._touched if (stage := self._rejected(place))]
        hosts = self._hosts = hosts.reweigh(self._touched, self._full_now, rejected)
        self._full += self._full_now
        self._full_now, self._touched = [], set()
        return hosts.again_steps() if hosts.scores.best() is None else []

    def best(self, among: int) -> Sequence[int]:
        scores = self._hosts.scores
        best = scores.best()
        if best is None:
            return ()
        if among <= 1:
            return (best,)
        found: list[int] = []
        while best is not None and len(found) < among:
            found.append(best)
            scores.take(best)
            best = scores.best()
        scores.put_back()
        for place in self._full_now:
            scores.take(place)
        return found

    def index(self, host: int) -> int:
        return self._host_index.layout.index_at.item(host)

    def weight(self, host: int) -> float:
        return self._hosts.scores.weight(host)

    def numbers(self, host: int) -> Numbers:
        return self._hosts.scores.numbers(host)

    def candidates(self, host: int) -> Iterator[Candidate]:
        candidates = self._candidates(host)
        if not self._order.matters:
            return candidates
        host_index = self._host_index
        one = OneHost(host_index.table, host_index.totals, host, host_index.totals.level)
        return self._order.of(one, candidates)

    def _candidates(self, host: int) -> Iterator[Candidate]:
        row = self._host_index.row_at.item(host)
        # Where roots alone serve the query, claims on other hosts take nothing from this one.
        claiming = host in self._claimed if self._alone else bool(self._claimed)
        return self._hosts.feasibility.candidates(self._host_index.fleet, row, claiming)

    def drop(self, host: int) -> None:
        self._full_now.append(host)
        self._hosts.scores.take(host)

    def claimed(self, host: int, candidate: Candidate) -> None:
        self._claimed.append(host)
        self._touched.update(
            self._host_index.places_of(candidate) if len(candidate.allocations) > 1 else [host]
        )
        if self._grouped:
            self._progress.members[self.index(host)] += 1

    def ranking(self, cell: int, claimed: Collection[int], expected: int) -> Iterator[int]:
        scores = self._hosts.scores
        for host in claimed:
            if self.weighed(host):
                scores.take(host)
        while (best := scores.best_of(cell)) is not None:
            yield best
            scores.take(best)

    def weighed(self, host: int) -> bool:
        return self._hosts.allows(host)

    def open_to(self, leaving: int, promised: Counter[int]) -> Callable[[int], bool]:
        full = {*self._full, *self._full_now}
        progress = self._progress
        if self._grouped:
            members = progress.members.copy()
            members.update(promised)
            members[self.index(leaving)] -= 1
            progress = GroupPlacement(+members, progress.present)
        may = self._hosts.open_again(progress)
        if may is not None:
            return lambda host: host not in full and may(host) and not self._rejected(host)
        if self._again:
            return lambda host: host not in full and not self._rejected(host)
        return lambda host: host not in full

    def _rejected(self, place: int) -> int:
        """Return the stage of a host that the run has claimed and that a filter of the class rejects now.

        0: no filter rejects it.
        """
        if not self._again or place not in self._claimed:
            return 0
        view = HostView(self._host_index.table, self._host_index.totals, np.array([place], dtype=np.intp))
        for stage, plugin in self._again:
            mask = ask_filter(plugin, view, self._request, self._progress)
            if mask is not None and not mask.item(0):
                return stage
        return 0
