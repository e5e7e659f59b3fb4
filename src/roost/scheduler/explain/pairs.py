"""Pairs of changes with which a request is placed, where no single change works."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from msgspec.structs import replace

from roost.fleet.columns import Bools
from roost.fleet.constraint import Constraint
from roost.model.reasons import Relaxation
from roost.scheduler.explain.causes import FailedCondition, failed_by
from roost.scheduler.explain.relaxations import Proposal, changed_on
from roost.scheduler.explain.snapshot import Condition
from roost.scheduler.explain.survey import Survey
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_PAIRS = 6
"""Pairs of conditions that are tried, those that exclude most hosts first."""
MOST_HOSTS = 3
"""Hosts on which each pair is tried."""


def pairs(request: SchedulingRequest, survey: Survey, filters: Sequence[Filter]) -> Iterator[Proposal]:
    """Yield changes of two conditions at once, on hosts that fail these two and no other one."""
    failed = failed_by(survey)
    number = np.zeros(len(survey.index), dtype=np.int32)
    for each in failed:
        number += each.hosts
    two = number == 2
    found: list[tuple[int, FailedCondition, FailedCondition, Bools]] = []
    for one, other in combinations([each for each in failed if (each.hosts & two).any()], 2):
        both: Bools = one.hosts & other.hosts & two
        if both.any():
            found.append((-int(both.sum()), one, other, both))
    found.sort(key=lambda each: each[0])
    for _, one, other, both in found[:MOST_PAIRS]:
        for position in survey.positions(both)[:MOST_HOSTS]:
            proposal = _together(request, survey, filters, (one.condition, other.condition), position)
            if proposal is not None:
                yield proposal


def _together(
    request: SchedulingRequest,
    survey: Survey,
    filters: Sequence[Filter],
    conditions: tuple[Condition, Condition],
    position: int,
) -> Proposal | None:
    if any(isinstance(each.subject, Constraint) for each in conditions):
        request = replace(request, query=survey.trees.asked, fallbacks=())
    left: Sequence[Filter] = filters
    parts: list[Relaxation] = []
    for condition in conditions:
        change = changed_on(request, survey, condition, left, position)
        if change is None:
            return None
        request, left = change.request, left if change.filters is None else change.filters
        parts.append(change.relaxation(""))
    first, second = parts
    return Proposal(
        kind="pair",
        name=f"{first.name} and {second.name}",
        text=f"{first.text} and {second.text}",
        distance=min(1.0, first.distance + second.distance),
        request=request,
        hosts=(survey.index.item(position),),
        filters=left,
        parts=(first, second),
    )
