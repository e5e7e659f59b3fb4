"""The equivalence classes of a scheduler, and the host pools of the runs that begin from them."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.feasibility import by_roots_alone
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.cache.plugin_answers import OwnColumns, Verdicts
from roost.scheduler.cache.plugin_roles import Parts, PluginParts
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.host_pool import Numbers
from roost.scheduler.request.places import is_forced
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start

MOST_CLASSES = 256
"""Equivalence classes kept; one more drops the least recently used one."""
_MOST_PLACES = 32_000_000
"""Places of all classes together. Each takes up to 9 bytes, mostly little more than one."""

_encode = msgspec.msgpack.Encoder().encode


class EquivalenceCache:
    """The cached results of a scheduler with these plugins, from one decision to the next."""

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = filters
        self._weighers = weighers
        self._plugin_parts = PluginParts(filters, weighers)
        self._ordering = (
            [each for each in filters if each.narrow is not None],
            [each for each in weighers if each.rank is not None],
        )
        self._host_index: HostIndex | None = None
        self._verdicts: Verdicts | None = None
        self._classes: dict[tuple[Hashable, ...], EquivalenceClass] = {}

    def pool(self, fleet: Fleet, request: SchedulingRequest, table: NodeTable) -> "CachedPool | None":
        """Return the host pool of a request on the fleet as it is now; None if the request cannot use the
        cache.

        Raises: `SchedulerFault` if a plugin cannot return its key.
        """
        if is_forced(request.spec) or not len(table):
            return None
        if any(place.step in ("force_hosts", "force_nodes") for place in request.places):
            # The query is for the trees of a few hosts: no other request would use its class.
            return None
        host_index = self._current_host_index(fleet, request, table)
        if host_index is None:
            return None
        parts = self._plugin_parts.parts(request)
        asked = tuple((_encode(each), by_roots_alone(fleet, each)) for each in request.queries)
        key = (*asked, *parts.key)
        equivalence_class = self._classes.pop(key, None)
        try:
            if equivalence_class is None or not equivalence_class.catch_up(request):
                equivalence_class = EquivalenceClass(host_index, request, parts.filter_roles)
        except SchedulerFault:
            return None
        self._classes[key] = equivalence_class
        if len(self._classes) > min(MOST_CLASSES, 1 + _MOST_PLACES // len(host_index.layout)):
            del self._classes[next(iter(self._classes))]
        order = CandidateOrder(*self._ordering, request)
        progress = progress_at_start(request, table, fleet)
        hosts = self._narrowed(host_index, equivalence_class, request, parts, progress)
        return None if hosts is None else CachedPool(host_index, hosts, request, parts.again, order, progress)

    def _narrowed(
        self,
        host_index: HostIndex,
        equivalence_class: EquivalenceClass,
        request: SchedulingRequest,
        parts: Parts,
        progress: GroupPlacement,
    ) -> EquivalenceClass | Narrowed | None:
        """Return the class, narrowed if some filters or weighers are asked for this request alone.

        None: a plugin fails on some host. The run finds out whether it meets that host.
        """
        if not (parts.asks_filters or parts.own or request.spec.ignore_hosts or request.places):
            return equivalence_class
        verdicts = self._verdicts = self._verdicts or Verdicts(host_index)
        own = OwnColumns(host_index, parts.own, request)
        try:
            return Narrowed(
                host_index, equivalence_class, verdicts, request, parts.filter_roles, own, progress
            )
        except SchedulerFault:
            return None

    def _current_host_index(
        self, fleet: Fleet, request: SchedulingRequest, table: NodeTable
    ) -> HostIndex | None:
        """Return the host index, caught up or rebuilt; None if a host has no weight or a plugin fails on one.

        The host index asks weighers about all hosts of the table, a run only about those that it may use. The
        run finds out whether the request must fail.
        """
        host_index, self._host_index = self._host_index, None
        verdicts, self._verdicts = self._verdicts, None
        try:
            if (
                host_index is None
                or host_index.fleet is not fleet
                or host_index.table is not table
                or host_index.options is not request.options
                or not host_index.sync(request)
            ):
                self._classes.clear()
                if not _sound(request):
                    return None
                host_index = HostIndex(fleet, table, self._filters, self._weighers, request)
        except (CannotWeigh, SchedulerFault):
            self._classes.clear()
            return None
        if self._classes:
            self._verdicts = verdicts
        self._host_index = host_index
        return host_index


def _sound(request: SchedulingRequest) -> bool:
    """Return whether all multipliers are finite numbers."""
    return all(map(math.isfinite, request.options.multipliers.values()))


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
        while (best := scores.best(cell)) is not None:
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
