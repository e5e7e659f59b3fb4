"""Relaxations: single changes of a request with which it is placed, each tried by really deciding it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from roost.fleet.constraint import SPLIT_RESOURCES, Constraint, with_amount, without
from roost.fleet.fleet import Fleet
from roost.fleet.near_misses import NearMiss
from roost.model.allocation import ANTI_AFFINITY
from roost.model.reasons import Relaxation, RelaxationKind
from roost.model.request import CandidateQuery
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.nodes import NodeTable
from roost.scheduler.places import Place
from roost.scheduler.plugins import Filter
from roost.scheduler.question import Question
from roost.scheduler.reasons.every_host import name_of
from roost.scheduler.reasons.misses import UNMEASURED, Near
from roost.scheduler.reasons.scratch import Scratch
from roost.scheduler.reasons.survey import Clock, Survey
from roost.scheduler.reasons.wording import without_what

FARTHEST = 1.0
"""The distance of a change that gives up the place that was asked for."""

_CPUS = ("VCPU", "PCPU")


@dataclass(slots=True)
class Proposal:
    """A changed question that may work, and the hosts to try it on, nearest first.

    ``filters``: in place of all filters; None for those that are enabled.
    """

    kind: RelaxationKind
    name: str
    text: str
    distance: float
    question: Question
    hosts: Sequence[int]
    filters: Sequence[Filter] | None = None
    group: str | None = None
    before: int | None = None
    after: int | None = None

    def relaxation(self, host: str) -> Relaxation:
        """The result, where it works."""
        return Relaxation(
            kind=self.kind,
            name=self.name,
            text=self.text,
            distance=round(self.distance, 4),
            host=host,
            group=self.group,
            before=self.before,
            after=self.after,
        )


def proposals(
    question: Question, survey: Survey, found: Sequence[Near], filters: Sequence[Filter], placed: int
) -> list[Proposal]:
    """Changes that may work, the smallest first. ``placed`` instances of the question fit as it is."""
    proposed = [each for one in found for each in _proposed(question, survey, one, filters)]
    if placed:
        wanted = len(question.instances)
        fewer = replace(question, instances=question.instances[:placed], min_count=placed)
        instances = "instance" if placed == 1 else "instances"
        text = f"{placed} {instances} instead of {wanted}"
        distance = (wanted - placed) / wanted
        proposed.append(Proposal("count", "instances", text, distance, fewer, (), None, None, wanted, placed))
    return sorted(proposed, key=lambda each: each.distance)


def working(scratch: Scratch, proposed: Sequence[Proposal], most: int, clock: Clock) -> Iterator[Relaxation]:
    """The changes that do work, smallest first, at most ``most``, while there is time.

    Of one amount the first that works is the smallest change: others of it are left out.
    """
    done: set[tuple[str, str, str | None]] = set()
    for each in proposed:
        key = (each.kind, each.name, each.group)
        if len(done) == most or clock.over():
            return
        if key in done:
            continue
        host = _host_of(scratch, each)
        if host is not None:
            done.add(key)
            yield each.relaxation(host)


def _host_of(scratch: Scratch, proposal: Proposal) -> str | None:
    """The host of the last instance, where a proposal works."""
    # One instance needs one host; of several, any may go anywhere.
    only: Sequence[int | None] = proposal.hosts if len(proposal.question.instances) == 1 else (None,)
    for host in only or (None,):
        node = scratch.works(proposal.question, proposal.filters, host)
        if node is not None:
            return _name(scratch.table, node)
    return None


def _name(table: NodeTable, node: str) -> str:
    index = table.index_of_node(node)
    return node if index is None else name_of(table, index)


def _proposed(
    question: Question, survey: Survey, near: Near, filters: Sequence[Filter]
) -> Iterator[Proposal]:
    condition, subject = near.condition, near.condition.subject
    distance = near.misses[0].distance
    if isinstance(subject, Constraint):
        if subject.is_amount:
            yield from _amounts(question, survey, near, subject)
            return
        changed = _asking(question, without(survey.asked.query, subject))
        yield Proposal(
            "constraint",
            condition.name,
            without_what(subject),
            distance,
            changed,
            near.index,
            group=subject.group,
        )
    elif isinstance(subject, Place):
        yield Proposal(
            "place",
            condition.name,
            f"without {condition.name}",
            FARTHEST if subject.allowed else UNMEASURED,
            _without_place(question, subject),
            near.index,
        )
    elif isinstance(subject, ServerGroupAntiAffinityFilter | ServerGroupAffinityFilter):
        yield from _groups(question, survey, near)
    elif subject is not None:
        left = [each for each in filters if each is not subject]
        text = f"without {condition.name}"
        yield Proposal("filter", condition.name, text, distance, question, near.index, left)


def _amounts(question: Question, survey: Survey, near: Near, constraint: Constraint) -> Iterator[Proposal]:
    name, wanted = constraint.names[0], constraint.amount
    for miss, index in zip(near.raw, near.index, strict=True):
        amount = _admitted(survey.fleet, constraint, miss)
        if amount < 1 or amount == wanted:
            continue
        spec = replace(question.spec, flavor=_flavor(question.spec, constraint, amount))
        query = with_amount(survey.asked.query, constraint, amount)
        group = f" in group {constraint.group}" if constraint.group else ""
        yield Proposal(
            "amount",
            near.condition.name,
            f"{amount} {name} instead of {wanted}{group}",
            abs(wanted - amount) / max(wanted, amount),
            replace(_asking(question, query), spec=spec),
            (index,),
            None,
            constraint.group,
            wanted,
            amount,
        )


def _admitted(fleet: Fleet, constraint: Constraint, miss: NearMiss) -> int:
    """The amount nearest to the one that a constraint demands that a near miss has."""
    most, wanted = miss.free or 0, constraint.amount
    if constraint.kind == SPLIT_RESOURCES:
        return most
    columns = fleet.inventory_columns(constraint.names[0])
    slot = columns.slot(fleet.row(miss.provider or miss.root))
    least, step = columns.min_unit.item(slot), columns.step_size.item(slot)
    amount = most - most % step if miss.unit != "min_unit" else least
    return min(amount, wanted - wanted % step) if miss.unit == "step_size" else amount


def _flavor(spec: RequestSpec, constraint: Constraint, amount: int) -> Flavor:
    """The flavor with the amount, where the query has it from the flavor: some filters look at it there."""
    flavor, name = spec.flavor, constraint.names[0]
    if constraint.group:
        return flavor
    if name in _CPUS and flavor.vcpus == constraint.amount:
        return replace(flavor, vcpus=amount)
    if name == "MEMORY_MB" and flavor.memory_mb == constraint.amount:
        return replace(flavor, memory_mb=amount)
    return flavor


def _groups(question: Question, survey: Survey, near: Near) -> Iterator[Proposal]:
    group = question.spec.group
    if group is None:
        return
    if group.policy != ANTI_AFFINITY:
        spec = replace(question.spec, group=None)
        changed = replace(question, spec=spec)
        text = f"without the server group {group.uuid} (affinity)"
        yield Proposal("group", near.condition.name, text, UNMEASURED, changed, near.index)
        return
    before = group.max_server_per_host
    members = survey.progress.members
    positions = survey.positions(survey.failing_only(near.condition))
    index = min(map(survey.index.item, positions), key=lambda each: members[each])
    after = max(before, members[index]) + 1
    spec = replace(question.spec, group=replace(group, max_server_per_host=after))
    yield Proposal(
        "group",
        near.condition.name,
        f"max_server_per_host {after} instead of {before} in server group {group.uuid}",
        (after - before) / after,
        replace(question, spec=spec),
        (index,),
        None,
        None,
        before,
        after,
    )


def _asking(question: Question, query: CandidateQuery) -> Question:
    return replace(question, query=query, fallbacks=())


def _without_place(question: Question, place: Place) -> Question:
    """The question without one of the places that the request names."""
    spec = question.spec
    spec = replace(
        spec,
        ignore_hosts=frozenset() if place.step == "ignore_hosts" else spec.ignore_hosts,
        force_hosts=() if place.step == "force_hosts" else spec.force_hosts,
        force_nodes=() if place.step == "force_nodes" else spec.force_nodes,
    )
    places = tuple(each for each in question.places if each.step != place.step)
    return replace(question, spec=spec, places=places)
