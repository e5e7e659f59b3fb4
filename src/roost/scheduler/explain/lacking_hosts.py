"""The hosts that lack least for a request, and the amounts that instances would free there."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from roost.fleet.constraint import Constraint
from roost.fleet.fits import has_room
from roost.model.allocation import Resources, total
from roost.scheduler.explain.moving_snapshot import MovableInstance, MovingSnapshot
from roost.scheduler.explain.survey import Survey
from roost.scheduler.filters.different_host import DifferentHostFilter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import SchedulingRequest

_NEVER = 1000.0
"""The distance of a host that lacks what no move brings."""


def hosts_lacking_least(snapshot: MovingSnapshot, request: SchedulingRequest, most: int) -> list[int]:
    """Return the nodes on which an instance of a request lacks least, nearest first.

    Hosts that other instances do not keep from the request come last: a trait, an aggregate or a place is
    missing there. Raises: `SchedulerError`.
    """
    survey = Survey(snapshot, msgspec.structs.replace(request, instances=request.instances[:1], min_count=1))
    hosts = np.flatnonzero(survey.is_host & snapshot.table.alive[survey.index])
    lacking = np.zeros(len(hosts))
    for condition in survey.conditions:
        if condition.failing is None:
            continue
        subject = condition.subject
        if isinstance(subject, Constraint) and subject.is_amount:
            continue
        # Some filters judge by the instances of a host. Nothing else that is missing comes with a move.
        by_instances = isinstance(subject, Filter) and subject.depends_on_claims
        by_instances = by_instances or condition.is_of(DifferentHostFilter)
        lacking += condition.failing[hosts] * (1.0 if by_instances else _NEVER)
    fleet, nodes = snapshot.fleet, survey.index[hosts]
    roots = np.array([fleet.row(snapshot.table.nodes[index]) for index in nodes.tolist()], dtype=np.intp)
    for name, amount in amounts_of(request).items():
        capacity, used = fleet.tree_totals(name, roots)
        lacking += np.where(
            ~has_room(amount, capacity), _NEVER, np.maximum(0, amount - capacity + used) / amount
        )
    rank = snapshot.table.tie_rank[nodes]
    order = np.lexsort((rank, lacking))[:most]
    return [int(index) for index in nodes[order]]


def amounts_of(request: SchedulingRequest) -> Resources:
    """Return the amounts that an instance needs whichever of the queries it is placed by."""
    each = [total(group.resources for group in query.groups) for query in request.queries]
    first, others = each[0], each[1:]
    least = {name: min([amount, *(other.get(name, 0) for other in others)]) for name, amount in first.items()}
    return {name: amount for name, amount in least.items() if amount}


def suffice(covered: Sequence[Resources], lacking: Mapping[str, int], number: int) -> bool:
    """Return whether of each lacking amount so many instances might cover all; not that the same ones do."""
    return all(
        sum(sorted((each[name] for each in covered), reverse=True)[:number]) >= amount
        for name, amount in lacking.items()
    )


def covered_by(leaving: MovableInstance, lacking: Mapping[str, int]) -> Resources:
    """Return how much of the lacking amounts an instance frees."""
    holds = total(leaving.held.allocations.values())
    return {name: min(amount, holds.get(name, 0)) for name, amount in lacking.items()}
