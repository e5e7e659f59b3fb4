"""Why a query finds what it finds: the trees that each constraint leaves, in the order they are asked.

Why not count while searching: a search asks the rarest class first and each group by itself, so its
counts would not add up to a story, and every decision would pay for what only a refusal needs. Here the
query is built up again, one constraint at a time, and searched each time.
"""

from collections.abc import Iterator
from typing import NamedTuple

from roost.fleet.candidates import CandidateSearch
from roost.fleet.constraint import SAME_SUBTREE, TOGETHER, Constraint, constraints_of, narrowed
from roost.fleet.fleet import Fleet
from roost.fleet.near_misses import NearMiss, near_misses
from roost.fleet.reach import reach_of
from roost.fleet.removals import Removal, removals
from roost.model.request import CandidateQuery


class Left(NamedTuple):
    """A constraint, and the number of trees that could still serve the query with it."""

    constraint: str
    trees: int


def explain(fleet: Fleet, query: CandidateQuery) -> list[Left]:
    """The trees left after each constraint of ``query``. The last entry is exact: trees with a candidate."""
    found: list[Left] = []
    left = len(fleet)
    for constraint, partial in constraints(query):
        # What a search calls anchors may be too many, never too few: so the least so far is nearer.
        left = min(left, len(CandidateSearch(fleet, partial).anchors))
        found.append(Left(constraint, left))
    search = CandidateSearch(fleet, query)
    if not search.single_provider:
        exact = int(search.have_candidates(search.anchors).sum())
        found.append(Left(str(Constraint(None, TOGETHER)), exact))
    return found


def constraints(query: CandidateQuery) -> Iterator[tuple[str, CandidateQuery]]:
    """The name of each constraint, with the query up to and including it.

    Common subtrees are not among them: only whole combinations have or lack them.
    """
    partial = CandidateQuery(())
    for constraint in constraints_of(query):
        if constraint.kind != SAME_SUBTREE:
            partial = narrowed(partial, constraint)
            yield str(constraint), partial


class Explanation(NamedTuple):
    """Why a query has so few candidates. ``trees``: how many there are; ``served``: those with a candidate,
    and ``unknown`` more that were too many to look at."""

    providers: int
    trees: int
    served: int
    unknown: int
    steps: list[Removal]
    near_misses: list[NearMiss]


def explain_fully(fleet: Fleet, query: CandidateQuery, most_misses: int) -> Explanation:
    """What each constraint removes, and what would be nearest. Takes a few searches for each constraint."""
    reach = reach_of(fleet)
    steps, judged = removals(fleet, query, reach)
    nearest = near_misses(fleet, query, reach, steps, judged, most_misses)
    return Explanation(
        providers=len(fleet),
        trees=int((fleet.parent[fleet.rows()] < 0).sum()),
        served=len(judged.served),
        unknown=len(judged.unknown),
        steps=steps,
        near_misses=nearest,
    )
