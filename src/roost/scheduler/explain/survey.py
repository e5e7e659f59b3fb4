"""A survey: the conditions of a request that each host meets, and the hosts that each condition removes in
turn.

Hosts and trees are counted by the same masks over all trees: a host is a tree that some agent reports for.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import numpy as np

from roost.fleet.columns import Bools
from roost.fleet.constraint import Constraint
from roost.model.folded_names import host_names
from roost.model.reasons import HostNames, Stage
from roost.scheduler.candidates.candidate_order import MOST_CANDIDATES
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.phrases import met_filter, met_place
from roost.scheduler.explain.snapshot import CLAIM_CONDITIONS, Condition, Snapshot, host_name
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_key, ask_to_narrow, ask_weigher
from roost.scheduler.plugins.plugins import Filter, Weigher, in_order
from roost.scheduler.request.places import RequestedPlace, ignored, is_forced
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_NAMED = 2_000
"""Hosts that a stage names at most; further ones are counted."""

MOST_NARROWED = 2_000
"""Hosts at most about whose candidates filters are asked one by one."""

CLAIMS = "claims"
"""The stage of the hosts whose claims were refused."""
NO_PROVIDER = "a provider in placement"
"""The stage of the hosts that report and have no provider in placement."""


class TimeLimit:
    """The time limit of an explanation, in ``seconds`` from now."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() >= self._ends


class Survey:
    """All trees and hosts before one instance of a request, with the instances before it placed.

    ``trees``: what the queries make of them. ``failures``: how many places and filters each host fails, of
    those that judge all hosts. ``left``: the hosts that nothing removes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        request: SchedulingRequest,
        refused: Collection[str] = (),
        time_limit: TimeLimit | None = None,
    ) -> None:
        """``refused``: the names of hosts on which claims were refused."""
        self.snapshot, self.request, self.table = snapshot, request, snapshot.table
        self.time_limit = time_limit or TimeLimit(60)
        self.complete = True
        self.trees = trees = snapshot.survey(request)
        self.index: Indexes = trees.index
        self.is_host: Bools = trees.index >= 0
        self.offered: Bools = trees.offered
        self.progress = snapshot.members(request)
        self._claimed = snapshot.claimed_members(request)
        self.conditions: list[Condition] = trees.conditions.copy()
        self.repeating: dict[Constraint, list[Filter]] = {}
        self._view = HostView(self.table, trees.source)
        self._judged = np.flatnonzero(trees.judged)
        self.left: Bools = trees.offered & self.is_host
        self.failures = np.zeros(len(self.index), dtype=np.int32)
        self._survey_places((*ignored(request.spec, self.table), *request.places))
        self.filters = _applying(snapshot.pools.plugins.filters, request)
        self._survey_filters()
        for condition in trees.others:
            self._remove(condition)
        self._survey_candidates(snapshot.pools.plugins.filters)
        self._survey_claims(refused)
        self._count_sole()

    # What explanations read

    @property
    def hosts(self) -> int:
        """The number of known hosts, with a tree or without."""
        return len(self.table)

    def can_weigh(self, weighers: Sequence[Weigher]) -> bool:
        """Return whether each host has a weight, so that none can fail a request that may use it."""
        try:
            for weigher in weighers:
                # A weigher of free amounts has a number for each host.
                if weigher.free_class(self.table) is None and ask_key(weigher, self.request) is not None:
                    ask_weigher(weigher, self._view, self.request, self.progress)
        except SchedulerError:
            return False
        return True

    def positions(self, mask: Bools) -> list[int]:
        """Return the positions of a mask over all trees."""
        found: list[int] = np.flatnonzero(mask).tolist()
        return found

    def name(self, position: int) -> str:
        """Return the name of the host at a position."""
        return host_name(self.table, self.index.item(position))

    def one(self, position: int) -> OneHost:
        """Return the host at a position, as plugins see a single host."""
        place = int(np.searchsorted(self._judged, position))
        return OneHost(self.table, self.trees.source, place, self.trees.source.level)

    def stages(self, last: Collection[Condition] = ()) -> tuple[Stage, ...]:
        """Return the funnel: see `Stage`. ``last``: conditions that come after all others."""
        without = self.hosts - int(self.is_host.sum())
        first = [Stage(kind="provider", name=NO_PROVIDER, hosts=without, hosts_alone=without)]
        ordered = [each for each in self.conditions if each not in last]
        ordered += [each for each in self.conditions if each in last]
        left, trees_left = self.is_host.copy(), np.ones(len(self.index), dtype=np.bool_)
        stages = [*(first if without else ())]
        for each in ordered:
            removed = self._excluded(each)
            stages.append(self._stage(each, left & removed, trees_left & removed))
            left &= ~removed
            if each.kind == "query":
                trees_left &= ~removed
        return tuple(stages)

    def _excluded(self, condition: Condition) -> Bools:
        """Return the trees that a condition removes, in its turn or sooner."""
        if condition.failing is None:
            return condition.removed
        if condition.kind == "query":
            return condition.removed | (condition.failing & ~self.offered)
        return condition.removed | condition.failing

    def passing(self) -> Bools:
        """Return the hosts that fail no place and no filter, of those that judge all hosts."""
        passing: Bools = self.is_host & (self.failures == 0)
        return passing

    def failing_only(self, condition: Condition) -> Bools:
        """Return the offered hosts that fail one place or filter only, as far as this is known."""
        if condition.failing is None:
            only: Bools = condition.removed & (self.failures == 0)
        else:
            only = self.offered & self.is_host & condition.failing & (self.failures == 1)
        return only

    # Places, filters, candidates and claims

    def _survey_places(self, places: Iterable[RequestedPlace]) -> None:
        for place in places:
            failing = self.is_host & np.isin(self.index, list(place.nodes), invert=place.allowed)
            condition = Condition(
                kind="place",
                name=place.step,
                words=met_place(place.step),
                subject=place,
                removed=failing,
                failing=failing,
            )
            self._remove(condition)

    def _survey_filters(self) -> None:
        for plugin in self.filters:
            known = plugin.looks_at is not None or plugin.named is not None
            failing = self._failing(plugin, self.trees.judged) if known else None
            if failing is None:
                # A filter that may look at anything is asked about few hosts, as in a decision.
                some = self._failing(plugin, self.left)
                removed = self.left if some is None else some
            else:
                removed = failing = failing & ~self._repeated(plugin, failing)
            repeats = any(plugin in each for each in self.repeating.values())
            condition = Condition(
                kind="filter",
                name=plugin.name,
                words=met_filter(plugin.name, self.request, repeats=repeats),
                subject=plugin,
                removed=removed,
                failing=failing,
            )
            self._remove(condition)

    def _repeated(self, plugin: Filter, failing: Bools) -> Bools:
        """Return the hosts that a filter and a constraint of the query exclude for the same cause.

        One cause is one condition, which may be the only one that a host fails.
        """
        repeated = np.zeros(len(self.index), dtype=np.bool_)
        for condition in self.conditions:
            subject = condition.subject
            if condition.failing is None or not isinstance(subject, Constraint):
                continue
            positions = np.flatnonzero(failing & condition.failing)
            if len(positions) and plugin.same_cause is not None:
                hosts = self._view.some(np.searchsorted(self._judged, positions))
                same = plugin.same_cause(subject, hosts, self.request)
                if same is not None:
                    repeated[positions[same]] = True
                    self.repeating.setdefault(subject, []).append(plugin)
        return repeated

    def _failing(self, plugin: Filter, among: Bools) -> Bools | None:
        """Return which of some hosts a filter excludes; None if it fails on one of them."""
        failing = np.zeros(len(self.index), dtype=np.bool_)
        positions = np.flatnonzero(among)
        hosts = self._view.some(np.searchsorted(self._judged, positions))
        try:
            implied = plugin in CLAIM_CONDITIONS
            progress = self._claimed if implied else self.progress
            mask = ask_filter(plugin, hosts, self.request, progress)
        except SchedulerError:
            return None
        if mask is not None:
            failing[positions] = ~mask
        return failing

    def _survey_candidates(self, filters: Sequence[Filter]) -> None:
        """Ask the filters that narrow candidates about each host that is left."""
        narrowing = [each for each in in_order(filters) if each.narrow is not None]
        narrowing = [each for each in narrowing if ask_key(each, self.request) is not None]
        if not narrowing or not self.left.any():
            return
        source = self.snapshot.candidates(self.request)
        position_of = {index: position for position, index in enumerate(source.index.tolist())}
        found = {
            id(each): Condition(
                kind="candidate",
                name=each.name,
                words=f"fit by {each.name}",
                subject=each,
                removed=np.zeros(len(self.index), dtype=np.bool_),
            )
            for each in narrowing
        }
        for number, position in enumerate(self.positions(self.left)):
            if number == MOST_NARROWED or self.time_limit.over():
                self.complete = False
                break
            place = position_of[self.index.item(position)]
            host = OneHost(self.table, source, place, source.level)
            candidates = list(islice(source.candidates(place), MOST_CANDIDATES))
            for plugin in narrowing:
                try:
                    candidates = list(ask_to_narrow(plugin, host, candidates, self.request))
                except SchedulerError:
                    candidates = []
                if not candidates:
                    found[id(plugin)].removed[position] = True
                    break
        for condition in found.values():
            self._remove(condition)

    def _survey_claims(self, refused: Collection[str]) -> None:
        if not refused:
            return
        removed = np.zeros(len(self.index), dtype=np.bool_)
        for position in self.positions(self.left):
            removed[position] = self.table.hosts[self.index.item(position)] in refused
        condition = Condition(kind="candidate", name=CLAIMS, words="have taken the claim", removed=removed)
        self._remove(condition)

    def _remove(self, condition: Condition) -> None:
        if condition.failing is not None:
            self.failures += condition.failing
        condition.removed = self.left & condition.removed
        self.left = self.left & ~condition.removed
        self.conditions.append(condition)

    def _count_sole(self) -> None:
        for condition in self.conditions:
            if condition.kind != "query":
                condition.sole = int(self.failing_only(condition).sum())

    def _stage(self, condition: Condition, removed: Bools, trees: Bools) -> Stage:
        """Return the stage of a condition. ``removed``: the hosts that it removes, ``trees``: the trees."""
        failing = condition.failing
        asked = condition.kind == "query"
        counted = asked and self.trees.trees is not None
        alone = None if failing is None else int((failing & self.is_host).sum())
        if condition.kind == "filter" and not bool((self.is_host == self.trees.judged).all()):
            alone = None
        return Stage(
            kind=condition.kind,
            name=condition.name,
            hosts=int(removed.sum()),
            hosts_alone=alone,
            hosts_sole=condition.sole,
            trees=int(trees.sum()) if counted else None,
            trees_alone=int(failing.sum()) if counted and failing is not None else None,
            providers_alone=condition.providers_alone,
            removed=HostNames() if asked else self._names(removed),
            text=condition.words,
        )

    def _names(self, removed: Bools) -> HostNames:
        positions = self.positions(removed)
        named = positions[:MOST_NAMED]
        return host_names(map(self.name, named), len(positions) - len(named))


def _applying(filters: Sequence[Filter], request: SchedulingRequest) -> list[Filter]:
    """Return the filters that apply to a request, in order, with the conditions of its server group.

    Claims are judged by these conditions whether or not the filters are enabled.
    """
    chosen = [] if is_forced(request.spec) else list(filters)
    enabled = {each.name for each in chosen}
    chosen += [each for each in CLAIM_CONDITIONS if each.name not in enabled]
    return [each for each in in_order(chosen) if ask_key(each, request) is not None]
