"""Relaxations: single changes of a request with which it is placed, each tried by really deciding it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from roost.fleet.columns import Bools
from roost.fleet.constraint import Constraint, with_amount, without
from roost.model.allocation import ANTI_AFFINITY
from roost.model.reasons import Relaxation, RelaxationKind
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.explain.misses import UNMEASURED
from roost.scheduler.explain.snapshot import Condition, NearHosts, Snapshot
from roost.scheduler.explain.survey import Survey, TimeLimit
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.changed import GROUP
from roost.scheduler.request.places import RequestedPlace
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

FARTHEST = 1.0
"""The distance of a change that gives up the requested place."""

_CPUS = ("VCPU", "PCPU")


@dataclass(slots=True)
class Proposal:
    """A changed request that may work, and the hosts to try it on, nearest first.

    ``filters``: in place of all filters; None for the enabled ones. A host None stands for all hosts.
    """

    kind: RelaxationKind
    name: str
    text: str
    distance: float
    request: SchedulingRequest
    hosts: Sequence[int | None]
    filters: Sequence[Filter] | None = None
    group: str | None = None
    before: int | None = None
    after: int | None = None
    without: tuple[str, ...] = ()
    parts: tuple[Relaxation, ...] = ()

    def relaxation(self, host: str) -> Relaxation:
        """Return the relaxation of a proposal that works."""
        return Relaxation(
            kind=self.kind,
            name=self.name,
            text=self.text,
            distance=round(self.distance, 4),
            host=host,
            group=self.group,
            before=self.before,
            after=self.after,
            without=self.without,
            parts=self.parts,
        )


def working(
    snapshot: Snapshot, proposed: Iterable[Proposal], most: int, time_limit: TimeLimit
) -> Iterator[Relaxation]:
    """Yield the changes that do work, smallest first, at most ``most``, until the time limit.

    For each amount the first that works is the smallest change; larger ones are left out.
    """
    done: set[tuple[str, str, str | None]] = set()
    for each in proposed:
        key = (each.kind, each.name, each.group)
        if len(done) == most or time_limit.over():
            return
        if key in done:
            continue
        host = _host_of(snapshot, each)
        if host is not None:
            done.add(key)
            yield each.relaxation(host)


def _host_of(snapshot: Snapshot, proposal: Proposal) -> str | None:
    """Return the host of the last instance if a proposal works, else None."""
    for host in snapshot.to_try(proposal.request, proposal.hosts):
        name = snapshot.works(proposal.request, proposal.filters, host)
        if name is not None:
            return name
    return None


def proposals(
    request: SchedulingRequest,
    survey: Survey,
    found: Sequence[NearHosts],
    filters: Sequence[Filter],
    placed: int,
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
        most = survey.trees.most_on(subject, position)
        return _with_less(request, condition, subject, most, index) if most else None
    if isinstance(subject, RequestedPlace):
        return _elsewhere(request, subject, (index,))
    if condition.is_of(ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter):
        return _group(request, survey, condition, index, (index,))
    if subject is not None:
        return _without_filter(request, subject, filters, UNMEASURED, (index,))
    return None


def _proposed(
    request: SchedulingRequest, survey: Survey, near: NearHosts, filters: Sequence[Filter]
) -> Iterator[Proposal]:
    condition, subject = near.condition, near.condition.subject
    distance = near.misses[0].distance
    if isinstance(subject, Constraint):
        asking = replace(request, query=survey.trees.asked, fallbacks=())
        if not subject.is_amount:
            yield _without_constraint(asking, survey, condition, distance, near.index, filters)
            return
        for amount, index in zip(near.amounts, near.index, strict=True):
            if amount >= 1 and amount != subject.amount:
                yield _with_less(asking, condition, subject, amount, index)
    elif isinstance(subject, RequestedPlace):
        yield _elsewhere(request, subject, near.index)
    elif condition.is_of(ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter):
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
        condition.without,
        distance,
        replace(request, query=without(request.query, constraint)),
        hosts,
        None if not repeating else [excusing(x, constraint) if x in repeating else x for x in filters],
        group=constraint.group,
        without=(str(constraint), *(each.name for each in repeating or ())),
    )


def excusing(plugin: Filter, constraint: Constraint) -> Filter:
    """Return a filter that also passes the hosts that it excludes for the same cause as a constraint."""
    judge, same_cause = plugin.mask, plugin.same_cause
    assert judge is not None and same_cause is not None

    def mask(hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        passing, same = judge(hosts, request, progress), same_cause(constraint, hosts, request)
        return passing if passing is None or same is None else passing | same

    return Filter(plugin=plugin.plugin, name=plugin.name, mask=mask)


def _with_less(
    request: SchedulingRequest, condition: Condition, constraint: Constraint, amount: int, index: int
) -> Proposal:
    """Return the request with the amount that a host has, which is larger where units forbid the requested
    one."""
    name, wanted = constraint.names[0], constraint.amount
    spec = replace(request.spec, flavor=_flavor_with(request.spec, constraint, amount))
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
        without_place(request, place),
        hosts,
        without=(place.step,),
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
    return Proposal("filter", name, f"without {name}", distance, request, hosts, left, without=(name,))


def _group(
    request: SchedulingRequest, survey: Survey, condition: Condition, index: int, hosts: Sequence[int]
) -> Proposal | None:
    group = request.spec.group
    if group is None:
        return None
    if group.policy != ANTI_AFFINITY:
        changed = replace(request, spec=replace(request.spec, group=None))
        text = f"without the server group {group.uuid} (affinity)"
        return Proposal("group", condition.name, text, UNMEASURED, changed, hosts, without=(GROUP,))
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


def _flavor_with(spec: RequestSpec, constraint: Constraint, amount: int) -> Flavor:
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


def without_place(request: SchedulingRequest, place: RequestedPlace) -> SchedulingRequest:
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
