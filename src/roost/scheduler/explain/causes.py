"""Causes: the one condition, or the two, without which a refused request is placed; each tried by deciding.

The condition after which no host is left need not be the one: without it the hosts of that moment may fail
others. So conditions that some host fails alone come first, then pairs that some host fails together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from msgspec.structs import replace

from roost.fleet.columns import Bools, Int32
from roost.fleet.constraint import TOGETHER, Constraint, without
from roost.model.reasons import RefusalCause, Relaxation, RelaxationKind
from roost.scheduler.explain.relaxations import FARTHEST, excusing, without_place
from roost.scheduler.explain.snapshot import Condition, NearHosts, Snapshot
from roost.scheduler.explain.survey import Survey, TimeLimit
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.changed import GROUP
from roost.scheduler.request.places import RequestedPlace
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_ALONE = 12
"""Conditions that are left out, each alone."""
MOST_PAIRS = 10
"""Pairs of conditions that are left out."""
MOST_HOSTS = 3
"""Hosts on which a request without conditions is tried, before it is tried on all."""


@dataclass(slots=True, eq=False)
class FailedCondition:
    """A condition, and which hosts fail it: bool[n], see `QuerySurvey`."""

    condition: Condition
    hosts: Bools


@dataclass(slots=True, eq=False)
class FoundCauses:
    """Conditions without which the request is placed, on ``host``. ``only``: hosts that fail nothing else."""

    conditions: tuple[Condition, ...]
    host: str
    only: Bools


def failed_by(survey: Survey) -> list[FailedCondition]:
    """Return all conditions with the hosts that fail them.

    Hosts of which only whole candidates are judged are in none.
    """
    known = survey.is_host.copy()
    failed: list[FailedCondition] = []
    in_query = np.zeros(len(survey.index), dtype=np.bool_)
    for each in survey.conditions:
        if each.kind != "query":
            hosts = each.removed if each.failing is None else each.failing
        elif each.failing is None:
            continue
        else:
            # A tree that another query offers meets this one's constraints well enough.
            hosts = each.failing & ~survey.offered
            in_query |= hosts
        failed.append(FailedCondition(each, hosts & survey.is_host))
    known &= survey.offered | in_query
    return [FailedCondition(each.condition, each.hosts & known) for each in failed]


def found_causes(
    snapshot: Snapshot,
    request: SchedulingRequest,
    survey: Survey,
    near: Sequence[NearHosts],
    last: Condition | None,
    time_limit: TimeLimit,
) -> FoundCauses | None:
    """Return the causes of a refusal; None if neither one condition nor two are enough, or time is over.

    ``near``: hosts that fail one condition alone. ``last``: the condition after which no host is left.
    """
    failed = failed_by(survey)
    number = np.zeros(len(survey.index), dtype=np.int32)
    for each in failed:
        number += each.hosts
    for conditions, only in (*_alone(survey, failed, number, near, last), *_pairs(survey, failed, number)):
        if time_limit.over():
            survey.complete = False
            return None
        host = _host_without(snapshot, request, survey, conditions, only)
        if host is not None:
            return FoundCauses(conditions, host, only)
    return None


_Tried = tuple[tuple[Condition, ...], Bools]


def _alone(
    survey: Survey,
    failed: Sequence[FailedCondition],
    number: Int32,
    near: Sequence[NearHosts],
    last: Condition | None,
) -> list[_Tried]:
    """Return conditions to leave out, each with the hosts that fail it alone as far as is known."""
    nearest = {id(each.condition): each.misses[0].distance for each in near}
    tried: list[tuple[tuple[bool, bool, float, int], _Tried]] = []
    for each in failed:
        only: Bools = each.hosts & (number == 1)
        # Whole candidates may fail where each condition is met, or only beside it.
        if not (each.hosts.any() or is_whole(last)):
            continue
        order = (
            not only.any(),
            each.condition is not last,
            nearest.get(id(each.condition), FARTHEST),
            -int(only.sum()),
        )
        tried.append((order, ((each.condition,), only)))
    tried.sort(key=lambda each: each[0])
    return [each for _, each in tried[:MOST_ALONE]]


def _pairs(survey: Survey, failed: Sequence[FailedCondition], number: Int32) -> list[_Tried]:
    """Return pairs of conditions to leave out, those first that most hosts fail and nothing else."""
    two = number == 2
    tried: list[_Tried] = []
    for one, other in combinations([each for each in failed if each.hosts.any()], 2):
        both: Bools = one.hosts & other.hosts & two
        if both.any() or not two.any():
            tried.append(((one.condition, other.condition), both))
    tried.sort(key=lambda each: -int(each[1].sum()))
    return tried[:MOST_PAIRS]


def is_whole(condition: Condition | None) -> bool:
    """Return whether a condition is of the query, and only whole candidates can fail it."""
    return condition is not None and condition.kind == "query" and condition.failing is None


def _host_without(
    snapshot: Snapshot,
    request: SchedulingRequest,
    survey: Survey,
    conditions: Sequence[Condition],
    only: Bools,
) -> str | None:
    """Return the host of a request without some conditions; None if it is refused all the same."""
    filters: Sequence[Filter] = snapshot.pools.plugins.filters
    if any(isinstance(each.subject, Constraint) for each in conditions):
        request = replace(request, query=survey.trees.asked, fallbacks=())
    for condition in conditions:
        dropped = _dropped(request, survey, condition, filters)
        if dropped is None:
            return None
        request, filters = dropped
    if only.any() and not any(group.resources for group in request.query.groups):
        # Nothing is left to claim, so it cannot be tried.
        return survey.name(survey.positions(only)[0])
    hosts: list[int | None] = [survey.index.item(each) for each in survey.positions(only)[:MOST_HOSTS]]
    for host in dict.fromkeys((*snapshot.to_try(request, hosts), None)):
        name = snapshot.works(request, filters, host)
        if name is not None:
            return name
    return None


def _dropped(
    request: SchedulingRequest, survey: Survey, condition: Condition, filters: Sequence[Filter]
) -> tuple[SchedulingRequest, Sequence[Filter]] | None:
    """Return the request and the filters without a condition; None for one that cannot be left out."""
    subject = condition.subject
    if isinstance(subject, Constraint):
        if subject.kind == TOGETHER:
            return None
        repeating = survey.repeating.get(subject, ())
        left = [excusing(each, subject) if each in repeating else each for each in filters]
        return replace(request, query=without(request.query, subject)), left
    if isinstance(subject, RequestedPlace):
        return without_place(request, subject), filters
    if _is_group(condition):
        return replace(request, spec=replace(request.spec, group=None)), filters
    if subject is not None:
        return request, [each for each in filters if each is not subject]
    return None


def told(survey: Survey, found: FoundCauses) -> tuple[RefusalCause, ...]:
    """Return causes with their amounts, on the state that the survey was made on."""
    return tuple(_cause(survey, each, found.only) for each in found.conditions)


def _cause(survey: Survey, condition: Condition, only: Bools) -> RefusalCause:
    subject = condition.subject
    met = None if condition.failing is None else int((survey.is_host & ~condition.failing).sum())
    cause = RefusalCause(
        kind=condition.kind,
        name=condition.name,
        text=condition.words,
        without=_names(survey, condition),
        met=met,
        hosts=int(only.sum()),
    )
    if not isinstance(subject, Constraint) or not subject.is_amount:
        return cause
    best = survey.trees.best(subject, only if only.any() else survey.is_host)
    return replace(
        cause,
        resource_class=subject.names[0],
        wanted=subject.amount,
        free=0 if best is None else best[1],
        host=None if best is None else survey.name(best[0]),
    )


def _names(survey: Survey, condition: Condition) -> tuple[str, ...]:
    """Return the names by which a condition is left out of a request that is decided again."""
    subject = condition.subject
    if isinstance(subject, Constraint):
        return str(subject), *(each.name for each in survey.repeating.get(subject, ()))
    return (GROUP,) if _is_group(condition) else (condition.name,)


def relaxation_of(survey: Survey, found: FoundCauses) -> Relaxation | None:
    """Return causes as the change that leaves them out; None if no instance could do without one of them."""
    subjects = (each.subject for each in found.conditions)
    if any(isinstance(each, Constraint) and each.is_amount and each.names[0] in _NEEDED for each in subjects):
        return None
    parts = tuple(
        Relaxation(
            kind=_kind(each),
            name=each.name,
            text="without the server group" if _is_group(each) else each.without,
            distance=FARTHEST,
            host="",
            group=each.subject.group if isinstance(each.subject, Constraint) else None,
            without=_names(survey, each),
        )
        for each in found.conditions
    )
    if len(parts) == 1:
        return replace(parts[0], host=found.host)
    return Relaxation(
        kind="pair",
        name=" and ".join(each.name for each in parts),
        text=" and ".join(each.text for each in parts),
        distance=FARTHEST,
        host=found.host,
        parts=parts,
    )


_NEEDED = ("VCPU", "PCPU", "MEMORY_MB")


def _kind(condition: Condition) -> RelaxationKind:
    if isinstance(condition.subject, Constraint):
        return "constraint"
    if isinstance(condition.subject, RequestedPlace):
        return "place"
    return "group" if _is_group(condition) else "filter"


def _is_group(condition: Condition) -> bool:
    return condition.is_of(ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter)
