"""The snapshot of a copy of the fleet: each constraint of the query is judged on all trees."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import SPLIT_RESOURCES, TOGETHER, Constraint, constraints_of
from roost.fleet.fits import largest_part
from roost.fleet.near_misses import NearMiss, nearest_of, relaxed_queries
from roost.fleet.reach import reach_of
from roost.fleet.removals import Removal, removals
from roost.fleet.splitting import parts_by_tree
from roost.ledger import Held, State
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.allocation import Candidate
from roost.model.reasons import Miss
from roost.model.request import CandidateQuery
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.candidates.fallback_candidates import fleet_candidates
from roost.scheduler.candidates.fleet_candidates import FleetCandidates
from roost.scheduler.explain.phrases import (
    lack_of,
    met_constraint,
    met_constraint_in_public,
    met_zone,
    with_aggregates,
    with_names,
    without_constraint,
    zone_of,
)
from roost.scheduler.explain.snapshot import Condition, NearHosts, QuerySurvey, Snapshot, host_name
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start
from roost.scheduler.selection.claim_result import ClaimResult
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim
from roost.scheduler.selection.running_selection import claimed


class FleetSnapshot(Snapshot):
    """Decides on a fleet as `roost.scheduler.gateways.local.Decide` does, by the same claims."""

    def __init__(self, fleet: Fleet, pools: HostPools, held: dict[str, Held] | None = None) -> None:
        """``held``: what instances hold that are written; of others nothing is known."""
        super().__init__(pools)
        self.fleet = fleet
        self._state = State(fleet, {} if held is None else held, 0.0)

    @property
    def version(self) -> int:
        return self.fleet.version

    def survey(self, request: SchedulingRequest) -> "FleetSurvey":
        return FleetSurvey(self.fleet, request, self.table)

    def candidates(self, request: SchedulingRequest, only: int | None = None) -> CandidateSource:
        return fleet_candidates(self.fleet, request, self.table, only)

    def members(self, request: SchedulingRequest) -> GroupPlacement:
        return progress_at_start(request, self.table, self.fleet)

    def index_of(self, claim: Claim) -> int | None:
        fleet = self.fleet
        hosts = fleet.hosts_of(fleet.row(provider) for provider in claim.candidate.allocations)
        return self.table.index_of_node(fleet.uuid(hosts[0])) if hosts else None

    @contextmanager
    def trying(self) -> Iterator[None]:
        mark = len(self._state.changes)
        try:
            with super().trying():
                yield
        finally:
            self._state.take_back(mark)

    def _claim(self, request: SchedulingRequest, claim: Claim) -> ClaimResult:
        handed = request.handed.get(claim.instance)
        self._state.name((claim.instance,) if handed is None else (claim.instance, handed.consumer))
        return claimed(self._state, request, claim)

    def _aggregates_of(self, segment: str) -> frozenset[str]:
        fleet = self.fleet
        return frozenset(fleet.aggregates_of(fleet.row(segment)) if segment in fleet else ())


class FleetSurvey(QuerySurvey):
    """All trees of a fleet before one instance of a request, by the same masks for hosts and trees.

    A host is a tree that some agent reports for. Of several queries, ``asked`` is the one that most trees can
    serve.
    """

    def __init__(self, fleet: Fleet, request: SchedulingRequest, table: NodeTable) -> None:
        self._fleet = fleet
        self._table = table
        self._request = request
        rows = fleet.rows()
        self._roots: Rows = rows[fleet.parent[rows] < 0]
        index = table.indexes_of_rows(fleet, self._roots)
        is_host: Bools = index >= 0
        self._reach = reach_of(fleet)
        served = [_served(fleet, query) for query in request.queries]
        most = max(range(len(served)), key=lambda number: int(served[number].sum()))
        by_others = np.zeros(fleet.n_rows, dtype=np.bool_)
        for number, trees in enumerate(served):
            if number != most:
                by_others |= trees
        asked = request.queries[most]
        self._steps, _ = removals(fleet, asked, self._reach, kept=True)
        super().__init__(
            index=index,
            offered=(served[most] | by_others)[self._roots],
            judged=is_host,
            source=EveryHost(fleet, self._roots[is_host], index[is_host]),
            asked=asked,
            query=tuple(str(with_names(each, fleet)) for each in constraints_of(asked)),
            trees=len(index),
            providers=len(fleet),
        )
        self.conditions = self._conditions(by_others)

    def near(self, among: Bools, most: int) -> Iterator[NearHosts]:
        fleet = self._fleet
        marks = np.zeros(fleet.n_rows, dtype=np.bool_)
        marks[self._roots[among & ~self.offered]] = True
        relaxed = relaxed_queries(fleet, self.asked, self._reach, self._steps, marks)
        for condition in self.conditions:
            condition.sole = 0
        for query in relaxed:
            constraint = query.constraint
            condition = next(each for each in self.conditions if each.subject == constraint)
            condition.sole = len(query.anchors)
            found = nearest_of(fleet, [query], most)
            index = [self.index.item(self._position(miss)) for miss in found]
            amounts = [self._admitted(miss) for miss in found] if constraint.is_amount else ()
            yield NearHosts(condition, [self._miss(condition, each) for each in found], index, amounts)

    def most_on(self, constraint: Constraint, position: int) -> int:
        fleet, name, root = self._fleet, constraint.names[0], self._roots.item(position)
        if constraint.kind == SPLIT_RESOURCES:
            _, _, together = parts_by_tree(fleet, name, constraint.amount)
            most = together.item(root)
        else:
            columns = fleet.inventory_columns(name)
            slots = columns.slots(self._reach.rows[self._reach.anchors == root])
            slots = slots[slots >= 0]
            units = columns.min_unit[slots], columns.max_unit[slots], columns.step_size[slots]
            most = int(largest_part(constraint.amount, columns.largest_in(slots), *units).max(initial=0))
        return most if most < constraint.amount else 0

    def best(self, constraint: Constraint, among: Bools) -> tuple[int, int] | None:
        fleet, name = self._fleet, constraint.names[0]
        if constraint.kind == SPLIT_RESOURCES:
            positions = np.flatnonzero(among)
            _, _, together = parts_by_tree(fleet, name, constraint.amount)
            amounts = together[self._roots[positions]]
        else:
            columns = fleet.inventory_columns(name)
            rows = columns.row[: columns.n].astype(np.intp)
            position = np.full(fleet.n_rows, -1, dtype=np.intp)
            position[self._roots[among]] = np.flatnonzero(among)
            positions = position[fleet.roots(rows)]
            inside = positions >= 0
            positions = positions[inside]
            amounts = columns.largest_in(columns.slots(rows[inside]))
        if not len(positions):
            return None
        best = int(amounts.argmax())
        return positions.item(best), int(amounts.item(best))

    def _conditions(self, by_others: Bools) -> list[Condition]:
        """Return the conditions of the query. ``by_others``: bool[n_rows], the trees that its fallbacks
        offer."""
        conditions = []
        left = np.ones(len(self._roots), dtype=np.bool_)
        for step in self._steps:
            after = left & (step.left | by_others)[self._roots]
            conditions.append(self._condition(step, left & ~after))
            left = after
        # A tree that could serve only by the sharing providers of other trees is no host for the request.
        conditions[-1].removed |= left & ~self.offered
        return [each for each in conditions if each.failing is not None or bool(each.removed.any())]

    def _condition(self, step: Removal, removed: Bools) -> Condition:
        shown = with_names(step.constraint, self._fleet)
        named = with_aggregates(shown, self._table)
        condition = Condition(
            kind="query",
            name=str(shown),
            words=met_constraint(named, in_trees=self._fleet.has_trees),
            subject=step.constraint,
            removed=removed,
            public=met_constraint_in_public(named, in_trees=self._fleet.has_trees),
            without=without_constraint(named),
        )
        zone = zone_of(step.constraint, self._request, self._table)
        if zone is not None:
            condition.words = condition.public = met_zone(zone)
            condition.without = f"without the availability zone {zone}"
        if step.constraint.kind != TOGETHER:
            condition.failing = step.failing[self._roots]
            condition.providers_alone = step.providers_alone
        return condition

    def _position(self, miss: NearMiss) -> int:
        return int(np.searchsorted(self._roots, self._fleet.row(miss.root)))

    def _miss(self, condition: Condition, miss: NearMiss) -> Miss:
        fleet, constraint = self._fleet, miss.constraint
        amount = constraint.is_amount
        return Miss(
            host=host_name(self._table, self.index.item(self._position(miss))),
            kind=condition.kind,
            name=condition.name,
            text=self._lack(miss),
            distance=round(miss.distance, 4),
            provider=None if miss.provider is None else fleet.name(fleet.row(miss.provider)),
            resource_class=constraint.names[0] if amount else None,
            wanted=constraint.amount if amount else None,
            free=miss.free,
        )

    def _lack(self, miss: NearMiss) -> str:
        zone = zone_of(miss.constraint, self._request, self._table)
        if zone is None:
            return lack_of(miss, self._fleet, self._table)
        zones = self._table.metadata(AVAILABILITY_ZONE)
        values = () if zones is None else zones.of(self.index.item(self._position(miss)))
        return f"is in the zone {', '.join(values) or self._request.options.default_availability_zone}"

    def _admitted(self, miss: NearMiss) -> int:
        """Return the amount of a near miss that is nearest to the one that its constraint demands."""
        constraint, most = miss.constraint, miss.free or 0
        if constraint.kind == SPLIT_RESOURCES:
            return most
        columns = self._fleet.inventory_columns(constraint.names[0])
        slot = columns.slot(self._fleet.row(miss.provider or miss.root))
        least, step = columns.min_unit.item(slot), columns.step_size.item(slot)
        amount: int = most - most % step if miss.unit != "min_unit" else least
        wanted = constraint.amount
        return min(amount, wanted - wanted % step) if miss.unit == "step_size" else amount


def _served(fleet: Fleet, query: CandidateQuery) -> Bools:
    """Return the trees that can serve a query: bool[n_rows]."""
    marks = np.zeros(fleet.n_rows, dtype=np.bool_)
    marks[CandidateSearch.cached(fleet, query).local_anchors()] = True
    return marks


class EveryHost(FleetCandidates):
    """The hosts ``index`` with the roots ``rows``, whatever is requested, for filters. They have no
    candidates."""

    def __init__(self, fleet: Fleet, rows: Rows, index: Indexes) -> None:
        self._fleet = fleet
        self._rows = rows
        CandidateSource.__init__(self, index)

    def candidates(self, position: int) -> Iterator[Candidate]:
        return iter(())
