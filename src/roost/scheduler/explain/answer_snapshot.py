"""The snapshot of the answers of a placement service over HTTP to a request.

It has the hosts with candidates, with their levels and candidates. Of the others the answers tell neither
what they lack nor what they have, and nothing of another query. So the query is one condition, filters are
judged on the hosts with candidates, and of changes of the request only those are tried that leave the query
as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet.constraint import constraints_of
from roost.model.assignment import Assigned
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.explain.snapshot import CLAIM_CONDITIONS, Condition, QuerySurvey, Snapshot
from roost.scheduler.gateways.missing_providers import known_nodes
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start
from roost.scheduler.selection.claim_result import CLAIMED, ClaimResult, ClaimVerdict
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim

QUERY = "everything that placement is asked for"
"""The stage of the whole query."""

TAKEN = "room that the other instances have taken"
"""The stage of the hosts that other instances of the request have filled."""

MOST_FITTED = 100
"""Hosts that pass all filters and are checked for a candidate."""


class PlacementAnswers(NamedTuple):
    """Answers of placement about the queries of a request.

    ``assigned`` returns the assignments on a node. ``members``: the hosts of each member of the server group,
    see `progress_at_start`. ``aggregates``: those of network segments.
    """

    candidates: FetchedCandidates
    assigned: Callable[[str], Assigned]
    members: Mapping[str, Sequence[str]] | None
    aggregates: Mapping[str, frozenset[str]]


class AnswerSnapshot(Snapshot):
    """Decides on the answers to one request; placement would judge the claims once more.

    The answers tell which hosts have candidates for the whole query, and not for which part of it the others
    have none: the query is one condition. `GET /v1/explain` of Roost's own placement tells the parts.
    """

    def __init__(self, request: SchedulingRequest, answers: PlacementAnswers, pools: HostPools) -> None:
        super().__init__(pools)
        self._queries = request.queries
        self._answers = answers

    def serves(self, request: SchedulingRequest) -> bool:
        """Return whether some host takes an instance. Nothing is claimed: the table may be others' too."""
        pool = self.pool(request)
        pool.ready()
        return any(next(pool.candidates(host), None) is not None for host in pool.best(MOST_FITTED))

    def survey(self, request: SchedulingRequest) -> QuerySurvey:
        source, table = self.candidates(request), self.table
        known = np.array([table.index_of_node(node) for node in known_nodes(table)], dtype=np.intp)
        index = np.concatenate((source.index, np.setdiff1d(known, source.index)))
        offered = np.arange(len(index)) < len(source.index)
        others = []
        if self._claims:
            full = np.zeros(len(index), dtype=np.bool_)
            for position in range(len(source.index)):
                full[position] = next(source.candidates(position), None) is None
            words = "have room beside the other instances"
            others.append(Condition(kind="candidate", name=TAKEN, words=words, removed=full))
        whole = Condition(
            kind="query",
            name=QUERY,
            words="have candidates in placement",
            public="have room for it with all that is asked for",
            removed=~offered,
            failing=~offered,
        )
        return QuerySurvey(
            index=index,
            offered=offered,
            judged=offered,
            source=source,
            asked=request.query,
            query=tuple(map(str, constraints_of(request.query))),
            conditions=[whole],
            others=others,
        )

    def candidates(self, request: SchedulingRequest, only: int | None = None) -> FetchedCandidates:
        if request.queries != self._queries:
            return FetchedCandidates((), {}, self.table)
        source = self._answers.candidates.apart(self._assigned, only)
        for claim in self._claims:
            source.claimed(claim.candidate)
        return source

    def members(self, request: SchedulingRequest) -> GroupPlacement:
        claims = {claim.instance: [claim.candidate.root] for claim in self._claims}
        return progress_at_start(request, self.table, claims={**(self._answers.members or {}), **claims})

    def index_of(self, claim: Claim) -> int | None:
        return self.table.index_of_node(claim.candidate.root)

    def _claim(self, request: SchedulingRequest, claim: Claim) -> ClaimResult:
        """Judge the condition of the server group, which placement judges with the claim."""
        one = msgspec.structs.replace(request, instances=(claim.instance,))
        for condition in CLAIM_CONDITIONS:
            if ask_key(condition, one) is not None:
                host = HostView(self.table, self.candidates(one, self.index_of(claim)))
                passing = ask_filter(condition, host, one, self.claimed_members(one))
                if passing is not None and not passing.all():
                    return ClaimResult(ClaimVerdict.REFUSED, "the condition of the server group is not met")
        return CLAIMED

    def _aggregates_of(self, segment: str) -> frozenset[str]:
        return self._answers.aggregates.get(segment, frozenset())

    def _assigned(self, node: str) -> Assigned:
        """Return the assignments on a node, those of the claims made here included."""
        found = self._answers.assigned(node)
        assignments = {claim.instance: claim.candidate.assignment for claim in self._claims}
        own = {instance: each for instance, each in assignments.items() if each and each.node == node}
        return {**found, **own} if own else found
