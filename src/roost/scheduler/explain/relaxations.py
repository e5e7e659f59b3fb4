"""Relaxations: single changes of a request with which it is placed, each tried by really deciding it."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from roost.fleet.columns import Bools
from roost.fleet.constraint import SPLIT_RESOURCES, Constraint, with_amount, without
from roost.fleet.fits import largest_part
from roost.fleet.fleet import Fleet
from roost.fleet.near_misses import NearMiss
from roost.fleet.splitting import parts_by_tree
from roost.model.allocation import ANTI_AFFINITY
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.explain.misses import UNMEASURED, Near
from roost.scheduler.explain.phrases import without_what
from roost.scheduler.explain.proposal import Proposal
from roost.scheduler.explain.survey import Condition, Survey
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.places import RequestedPlace
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

FARTHEST = 1.0
"""The distance of a change that gives up the requested place."""

_CPUS = ("VCPU", "PCPU")


def proposals(
    request: SchedulingRequest, survey: Survey, found: Sequence[Near], filters: Sequence[Filter], placed: int
) -> list[Proposal]:
    """Return changes that may work, the smallest first. ``placed`` instances of the request fit as it is."""
    proposed = [each for one in found for each in _proposed(request, survey, one, filters)]
    if placed:
        wanted = len(request.instances)
        fewer = replace(request, instances=request.instances[:placed], min_count=placed)
        instances = "instance" if placed == 1 else "instances"
        text = f"{placed} {instances} instead of {wanted}"
        distance = (wanted - placed) / wanted
        proposed.append(Proposal("count", "instances", text, distance, fewer, (), None, None, wanted, placed))
    return sorted(proposed, key=lambda each: each.distance)


def changed_on(
    request: SchedulingRequest,
    survey: Survey,
    condition: Condition,
    filters: Sequence[Filter],
    position: int,
) -> Proposal | None:
    """Return the change of one condition with which a host meets it; None if there is none."""
    subject = condition.subject
    index = survey.index.item(position)
    if isinstance(subject, Constraint):
        if not subject.is_amount:
            return _without_constraint(request, survey, condition, UNMEASURED, (index,), filters)
        most = _most_on(survey, subject, position)
        return _with_less(request, condition, subject, most, index) if most else None
    if isinstance(subject, RequestedPlace):
        return _elsewhere(request, subject, (index,))
    if isinstance(subject, ServerGroupAntiAffinityFilter | ServerGroupAffinityFilter):
        return _group(request, survey, condition, index, (index,))
    if subject is not None:
        return _without_filter(request, subject, filters, UNMEASURED, (index,))
    return None


def _proposed(
    request: SchedulingRequest, survey: Survey, near: Near, filters: Sequence[Filter]
) -> Iterator[Proposal]:
    condition, subject = near.condition, near.condition.subject
    distance = near.misses[0].distance
    if isinstance(subject, Constraint):
        asking = replace(request, query=survey.asked.query, fallbacks=())
        if not subject.is_amount:
            yield _without_constraint(asking, survey, condition, distance, near.index, filters)
            return
        for miss, index in zip(near.raw, near.index, strict=True):
            amount = _admitted(survey.fleet, subject, miss)
            if amount >= 1 and amount != subject.amount:
                yield _with_less(asking, condition, subject, amount, index)
    elif isinstance(subject, RequestedPlace):
        yield _elsewhere(request, subject, near.index)
    elif isinstance(subject, ServerGroupAntiAffinityFilter | ServerGroupAffinityFilter):
        members = survey.progress.members
        positions = survey.positions(survey.failing_only(condition))
        fewest = min(map(survey.index.item, positions), key=lambda each: members[each])
        change = _group(request, survey, condition, fewest, near.index)
        if change is not None:
            yield change
    elif subject is not None:
        yield _without_filter(request, subject, filters, distance, near.index)


def _without_constraint(
    request: SchedulingRequest,
    survey: Survey,
    condition: Condition,
    distance: float,
    hosts: Sequence[int],
    filters: Sequence[Filter],
) -> Proposal:
    """Return the request without a constraint; filters that exclude hosts for the same cause pass these."""
    constraint = condition.subject
    assert isinstance(constraint, Constraint)
    repeating = survey.repeating.get(constraint)
    return Proposal(
        "constraint",
        condition.name,
        without_what(constraint, survey.fleet),
        distance,
        replace(request, query=without(request.query, constraint)),
        hosts,
        None if not repeating else [Excusing(x, constraint) if x in repeating else x for x in filters],
        group=constraint.group,
    )


class Excusing:
    """A filter that also passes the hosts that it excludes for the same cause as a constraint."""

    def __init__(self, plugin: Any, constraint: Constraint) -> None:
        self.name: str = plugin.name
        self._plugin = plugin
        self._constraint = constraint

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        passing: Bools | None = self._plugin.mask(hosts, request, progress)
        same: Bools | None = self._plugin.same_cause(self._constraint, hosts, request)
        return passing if passing is None or same is None else passing | same


def _with_less(
    request: SchedulingRequest, condition: Condition, constraint: Constraint, amount: int, index: int
) -> Proposal:
    """Return the request with the amount that a host has, which is larger where units forbid the requested
    one."""
    name, wanted = constraint.names[0], constraint.amount
    spec = replace(request.spec, flavor=flavor_with(request.spec, constraint, amount))
    group = f" in group {constraint.group}" if constraint.group else ""
    return Proposal(
        "amount",
        condition.name,
        f"{amount} {name} instead of {wanted}{group}",
        abs(wanted - amount) / max(wanted, amount),
        replace(request, query=with_amount(request.query, constraint, amount), spec=spec),
        (index,),
        None,
        constraint.group,
        wanted,
        amount,
    )


def _elsewhere(request: SchedulingRequest, place: RequestedPlace, hosts: Sequence[int]) -> Proposal:
    distance = FARTHEST if place.allowed else UNMEASURED
    return Proposal(
        "place",
        place.step,
        f"without {place.step}",
        distance,
        _without_place(request, place),
        hosts,
    )


def _without_filter(
    request: SchedulingRequest,
    left_out: Filter,
    filters: Sequence[Filter],
    distance: float,
    hosts: Sequence[int],
) -> Proposal:
    left = [each for each in filters if each is not left_out]
    name = left_out.name
    return Proposal("filter", name, f"without {name}", distance, request, hosts, left)


def _group(
    request: SchedulingRequest, survey: Survey, condition: Condition, index: int, hosts: Sequence[int]
) -> Proposal | None:
    group = request.spec.group
    if group is None:
        return None
    if group.policy != ANTI_AFFINITY:
        changed = replace(request, spec=replace(request.spec, group=None))
        text = f"without the server group {group.uuid} (affinity)"
        return Proposal("group", condition.name, text, UNMEASURED, changed, hosts)
    before = group.max_server_per_host
    after = max(before, survey.progress.members[index]) + 1
    spec = replace(request.spec, group=replace(group, max_server_per_host=after))
    return Proposal(
        "group",
        condition.name,
        f"max_server_per_host {after} instead of {before} in server group {group.uuid}",
        (after - before) / after,
        replace(request, spec=spec),
        (index,),
        None,
        None,
        before,
        after,
    )


def _most_on(survey: Survey, constraint: Constraint, position: int) -> int:
    """Return the part of a constraint's amount that a host could give, from 0 to one less than the amount."""
    fleet, name, root = survey.fleet, constraint.names[0], survey.roots.item(position)
    if constraint.kind == SPLIT_RESOURCES:
        _, _, together = parts_by_tree(fleet, name, constraint.amount)
        most = together.item(root)
    else:
        columns = fleet.inventory_columns(name)
        slots = columns.slots(survey.reach.rows[survey.reach.anchors == root])
        slots = slots[slots >= 0]
        units = columns.min_unit[slots], columns.max_unit[slots], columns.step_size[slots]
        most = int(largest_part(constraint.amount, columns.largest_in(slots), *units).max(initial=0))
    return most if most < constraint.amount else 0


def _admitted(fleet: Fleet, constraint: Constraint, miss: NearMiss) -> int:
    """Return the amount of a near miss that is nearest to the one that a constraint demands."""
    most, wanted = miss.free or 0, constraint.amount
    if constraint.kind == SPLIT_RESOURCES:
        return most
    columns = fleet.inventory_columns(constraint.names[0])
    slot = columns.slot(fleet.row(miss.provider or miss.root))
    least, step = columns.min_unit.item(slot), columns.step_size.item(slot)
    amount = most - most % step if miss.unit != "min_unit" else least
    return min(amount, wanted - wanted % step) if miss.unit == "step_size" else amount


def flavor_with(spec: RequestSpec, constraint: Constraint, amount: int) -> Flavor:
    """Return the flavor with the amount, if the query has it from there: some filters read it from the
    flavor."""
    flavor, name = spec.flavor, constraint.names[0]
    if constraint.group:
        return flavor
    if name in _CPUS and flavor.vcpus == constraint.amount:
        return replace(flavor, vcpus=amount)
    if name == "MEMORY_MB" and flavor.memory_mb == constraint.amount:
        return replace(flavor, memory_mb=amount)
    return flavor


def _without_place(request: SchedulingRequest, place: RequestedPlace) -> SchedulingRequest:
    """Return the request without one of the places that it names."""
    spec = request.spec
    spec = replace(
        spec,
        ignore_hosts=frozenset() if place.step == "ignore_hosts" else spec.ignore_hosts,
        force_hosts=() if place.step == "force_hosts" else spec.force_hosts,
        force_nodes=() if place.step == "force_nodes" else spec.force_nodes,
    )
    places = tuple(each for each in request.places if each.step != place.step)
    return replace(request, spec=spec, places=places)
