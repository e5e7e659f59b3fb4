"""A survey: the conditions of a request that each host meets, and the hosts that each condition removes in
turn.

Hosts and trees are counted by the same masks over all trees: a host is a tree that some agent reports for.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import IN_TREE, TOGETHER, Constraint
from roost.fleet.feasibility import feasibilities
from roost.fleet.reach import Reach, is_flat, reach_of
from roost.fleet.removals import Removal, removals
from roost.model.folded_names import host_names
from roost.model.reasons import HostNames, Stage, StageKind
from roost.model.request import CandidateQuery
from roost.scheduler.candidates.candidate_order import MOST_CANDIDATES
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.candidates.fallback_candidates import fleet_candidates
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.every_host import EveryHost, name_of
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.declarations import free_of_class, in_order, looks_at, names_hosts
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_key, ask_to_narrow, ask_weigher
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.places import RequestedPlace, ignored, is_forced
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

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


@dataclass(slots=True, eq=False)
class Condition:
    """One condition of a request. Masks are over `Survey.roots`.

    ``subject``: the source of the condition. ``removed``: hosts that it removes in its turn. ``failing``: all
    hosts that do not meet it; None if not all were judged. ``sole``: how many hosts it alone removes.
    """

    kind: StageKind
    name: str
    subject: Constraint | RequestedPlace | Filter | None
    removed: Bools
    failing: Bools | None = None
    sole: int | None = None
    providers_alone: int | None = None


@dataclass(slots=True)
class QueryTrees:
    """One query of the request, and the trees that can serve it: ``local``, bool[n_rows]."""

    query: CandidateQuery
    local: Bools
    steps: list[Removal] = field(default_factory=list)


class Survey:
    """All trees and hosts of a fleet before one instance of a request, with the instances before it placed.

    ``roots``: the rows of all trees. ``index``: the node of each, -1 for a tree that is no host. ``asked``:
    of several queries the one that most trees can serve. ``offered``: the trees that can serve any query.
    ``failures``: how many places and filters each host fails, of those that judge all hosts. ``left``: the
    hosts that nothing removes.
    """

    def __init__(
        self,
        fleet: Fleet,
        request: SchedulingRequest,
        table: NodeTable,
        filters: Sequence[Filter],
        refused: Collection[str] = (),
        time_limit: TimeLimit | None = None,
    ) -> None:
        """``refused``: the names of hosts on which claims were refused."""
        self.fleet, self.request, self.table = fleet, request, table
        self.time_limit = time_limit or TimeLimit(60)
        self.complete = True
        rows = fleet.rows()
        self.roots: Rows = rows[fleet.parent[rows] < 0]
        self.index: Indexes = table.indexes_of_rows(fleet, self.roots)
        self.is_host: Bools = self.index >= 0
        self.progress = progress_at_start(request, table, fleet)
        self._claimed = _claimed_members(request, table, fleet)
        self.conditions: list[Condition] = []
        self.repeating: dict[Constraint, list[Filter]] = {}
        self._survey_query()
        self._every = EveryHost(fleet, self.roots[self.is_host], self.index[self.is_host])
        self._view = HostView(table, self._every)
        self._hosts = np.flatnonzero(self.is_host)
        self.left: Bools = self.offered & self.is_host
        self.failures = np.zeros(len(self.roots), dtype=np.int32)
        self._survey_places((*ignored(request.spec, table), *request.places))
        self.filters = _applying(filters, request)
        self._survey_filters()
        self._survey_candidates(filters)
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
                if free_of_class(weigher, self.table) is None and ask_key(weigher, self.request) is not None:
                    ask_weigher(weigher, self._view, self.request, self.progress)
        except SchedulerError:
            return False
        return True

    def positions(self, mask: Bools) -> list[int]:
        """Return the positions in ``roots`` of a mask."""
        found: list[int] = np.flatnonzero(mask).tolist()
        return found

    def name(self, position: int) -> str:
        """Return the name of the host at a position."""
        return name_of(self.table, self.index.item(position))

    def one(self, position: int) -> OneHost:
        """Return the host at a position, as plugins see a single host."""
        place = int(np.searchsorted(self._hosts, position))
        return OneHost(self.table, self._every, place, self._every.level)

    def stages(self) -> tuple[Stage, ...]:
        """Return the funnel: see `Stage`."""
        without = self.hosts - int(self.is_host.sum())
        first = [Stage(kind="provider", name=NO_PROVIDER, hosts=without, hosts_alone=without)]
        return (*(first if without else ()), *map(self._stage, self.conditions))

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

    # The query

    def _survey_query(self) -> None:
        fleet = self.fleet
        self.reach: Reach = reach_of(fleet)
        parts = [QueryTrees(query, _local(fleet, query)) for query in self.request.queries]
        asked = self.asked = max(parts, key=lambda part: int(part.local.sum()))
        others = np.zeros(fleet.n_rows, dtype=np.bool_)
        for part in parts:
            if part is not asked:
                others |= part.local
        self.offered: Bools = (asked.local | others)[self.roots]
        asked.steps, _ = removals(fleet, asked.query, self.reach, kept=True)
        left = np.ones(len(self.roots), dtype=np.bool_)
        for step in asked.steps:
            cached = left & (step.left | others)[self.roots]
            name = constraint_name(step.constraint, fleet)
            condition = Condition("query", name, step.constraint, left & ~cached)
            if step.constraint.kind != TOGETHER:
                condition.failing = step.failing[self.roots]
                condition.providers_alone = step.providers_alone
            self.conditions.append(condition)
            left = cached
        # A tree that could serve only by the sharing providers of other trees is no host for the request.
        self.conditions[-1].removed |= left & ~self.offered
        self.conditions = [
            each for each in self.conditions if each.failing is not None or bool(each.removed.any())
        ]

    # Places, filters, candidates and claims

    def _survey_places(self, places: Iterable[RequestedPlace]) -> None:
        for place in places:
            failing = self.is_host & np.isin(self.index, list(place.nodes), invert=place.allowed)
            self._remove(Condition("place", place.step, place, failing, failing))

    def _survey_filters(self) -> None:
        for plugin in self.filters:
            known = looks_at(plugin) is not None or names_hosts(plugin)
            failing = self._failing(plugin, self.is_host) if known else None
            if failing is None:
                # A filter that may look at anything is asked about few hosts, as in a decision.
                some = self._failing(plugin, self.left)
                self._remove(Condition("filter", plugin.name, plugin, self.left if some is None else some))
            else:
                failing &= ~self._repeated(plugin, failing)
                self._remove(Condition("filter", plugin.name, plugin, failing, failing))

    def _repeated(self, plugin: Filter, failing: Bools) -> Bools:
        """Return the hosts that a filter and a constraint of the query exclude for the same cause.

        One cause is one condition, which may be the only one that a host fails.
        """
        repeated = np.zeros(len(self.roots), dtype=np.bool_)
        for condition in self.conditions:
            subject = condition.subject
            if condition.failing is None or not isinstance(subject, Constraint):
                continue
            positions = np.flatnonzero(failing & condition.failing)
            if len(positions) and hasattr(plugin, "same_cause"):
                hosts = self._view.some(np.searchsorted(self._hosts, positions))
                same = plugin.same_cause(subject, hosts, self.request)
                if same is not None:
                    repeated[positions[same]] = True
                    self.repeating.setdefault(subject, []).append(plugin)
        return repeated

    def _failing(self, plugin: Filter, among: Bools) -> Bools | None:
        """Return which of some hosts a filter excludes; None if it fails on one of them."""
        failing = np.zeros(len(self.roots), dtype=np.bool_)
        positions = np.flatnonzero(among)
        hosts = self._view.some(np.searchsorted(self._hosts, positions))
        try:
            implied = isinstance(plugin, ClaimCondition)
            progress = self._claimed if implied else self.progress
            mask = ask_filter(plugin, hosts, self.request, progress)
        except SchedulerError:
            return None
        if mask is not None:
            failing[positions] = ~mask
        return failing

    def _survey_candidates(self, filters: Sequence[Filter]) -> None:
        """Ask the filters that narrow candidates about each host that is left."""
        narrowing = [each for each in in_order(filters) if hasattr(each, "narrow")]
        narrowing = [each for each in narrowing if ask_key(each, self.request) is not None]
        if not narrowing or not self.left.any():
            return
        source = fleet_candidates(self.fleet, self.request, self.table)
        position_of = {index: position for position, index in enumerate(source.index.tolist())}
        found = {
            id(each): Condition("candidate", each.name, each, np.zeros(len(self.roots), dtype=np.bool_))
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
                    candidates = list(ask_to_narrow(plugin, host, candidates, self.request))  # type: ignore[arg-type]
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
        removed = np.zeros(len(self.roots), dtype=np.bool_)
        for position in self.positions(self.left):
            removed[position] = self.table.hosts[self.index.item(position)] in refused
        self._remove(Condition("candidate", CLAIMS, None, removed))

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

    def _stage(self, condition: Condition) -> Stage:
        removed = condition.removed & self.is_host
        failing = condition.failing
        asked = condition.kind == "query"
        return Stage(
            kind=condition.kind,
            name=condition.name,
            hosts=int(removed.sum()),
            hosts_alone=None if failing is None else int((failing & self.is_host).sum()),
            hosts_sole=condition.sole,
            trees=int(condition.removed.sum()) if asked else None,
            trees_alone=int(failing.sum()) if asked and failing is not None else None,
            providers_alone=condition.providers_alone,
            removed=HostNames() if asked else self._names(removed),
        )

    def _names(self, removed: Bools) -> HostNames:
        positions = self.positions(removed)
        named = positions[:MOST_NAMED]
        return host_names(map(self.name, named), len(positions) - len(named))


class AffinityCondition(ServerGroupAffinityFilter):
    """The condition of a claim that names an affinity group."""


class AntiAffinityCondition(ServerGroupAntiAffinityFilter):
    """The condition of a claim that names an anti-affinity group."""


ClaimCondition = AffinityCondition | AntiAffinityCondition
"""Conditions by which claims are judged although the filter is not enabled, or does not apply."""


def _applying(filters: Sequence[Filter], request: SchedulingRequest) -> list[Filter]:
    """Return the filters that apply to a request, in order, with the conditions of its server group.

    Claims are judged by these conditions whether or not the filters are enabled.
    """
    chosen = [] if is_forced(request.spec) else list(filters)
    enabled = {each.name for each in chosen}
    conditions = (AffinityCondition(), AntiAffinityCondition())
    # They have ``named`` in place of ``mask``.
    chosen += [each for each in conditions if each.name not in enabled]  # type: ignore[misc]
    return [each for each in in_order(chosen) if ask_key(each, request) is not None]


def _claimed_members(request: SchedulingRequest, table: NodeTable, fleet: Fleet) -> GroupPlacement:
    """Return the members of the server group that have claims. Claims are judged by these alone."""
    group = request.spec.group
    if group is None:
        return GroupPlacement()
    spec = msgspec.structs.replace(request.spec, group=msgspec.structs.replace(group, hosts=()))
    return progress_at_start(msgspec.structs.replace(request, spec=spec), table, fleet)


def constraint_name(constraint: Constraint, fleet: Fleet) -> str:
    """Return a constraint as text, with the name of a provider in place of its uuid."""
    if constraint.kind == IN_TREE:
        names = tuple(fleet.name(fleet.row(each)) if each in fleet else each for each in constraint.names)
        constraint = msgspec.structs.replace(constraint, names=names)
    return str(constraint)


def _local(fleet: Fleet, query: CandidateQuery) -> Bools:
    """Return the trees that can serve a query: bool[n_rows]."""
    cached = None if is_flat(fleet, query) else feasibilities(fleet).of(query)
    marks = np.zeros(fleet.n_rows, dtype=np.bool_)
    marks[CandidateSearch(fleet, query, feasibility=cached).local_anchors()] = True
    return marks
