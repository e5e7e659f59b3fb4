"""Explanations: why a query has so few candidates.

An explanation builds the query up again, one constraint at a time, and searches each time. Counts taken
during a normal search would not follow the order of the query, because the search matches the rarest class
first and each group by itself; and every decision would pay for counts that only refusals need.
"""

from typing import NamedTuple

from roost.fleet.fleet import Fleet
from roost.fleet.near_misses import NearMiss, near_misses
from roost.fleet.reach import reach_of
from roost.fleet.removals import Removal, removals
from roost.model.request import CandidateQuery


class Explanation(NamedTuple):
    """The removals of each constraint of a query, and its near misses.

    ``providers``, ``trees``: numbers in the whole fleet. ``served``: the number of trees with a candidate.
    ``unknown``: the number of trees that were not searched because there are too many.
    """

    providers: int
    trees: int
    served: int
    unknown: int
    steps: list[Removal]
    near_misses: list[NearMiss]


def explain_fully(fleet: Fleet, query: CandidateQuery, max_misses: int) -> Explanation:
    """Return the removals of each constraint, and at most ``max_misses`` near misses.

    It takes a few searches for each constraint. Raises `TooMuchWork`.
    """
    reach = reach_of(fleet)
    steps, served = removals(fleet, query, reach)
    nearest = near_misses(fleet, query, reach, steps, served, max_misses)
    return Explanation(
        providers=len(fleet),
        trees=int((fleet.parent[fleet.rows()] < 0).sum()),
        served=len(served.served),
        unknown=len(served.unknown),
        steps=steps,
        near_misses=nearest,
    )
