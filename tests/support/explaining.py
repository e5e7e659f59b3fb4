"""A world in which each decision is explained, and everything that the reasons say is checked."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from roost.fleet import Fleet
from roost.fleet.constraint import Constraint, constraints_of, with_amount, without
from roost.ledger import State
from roost.ledger.feed import Commit, encode_changes
from roost.model.allocation import GroupPolicy
from roost.model.folded_names import unfolded
from roost.model.reasons import Reasons, Relaxation
from roost.model.request import RequestGroup
from roost.model.spec import Flavor, RequestedDestination, RequestSpec, ServerGroup
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.explain.explainer import decode_reasons
from roost.scheduler.explain.explanation import explain
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.explain.following_copy import Copy, CopyMessage, Refused, encode_message
from roost.scheduler.explain.phrases import with_names
from roost.scheduler.explain.relaxations import excusing
from roost.scheduler.gateways.local import Decide
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome
from support.clouds import uuid_of
from support.decided_worlds import HOSTS, World
from support.decisions import Step


class ExplainedWorld(World):
    """``copy``: a copy that explains each refusal as well. ``refusals``: how many refusals were explained.
    ``relaxed``: how many relaxations were found, by kind."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.copy = Copy(self.fleet.fork(), HostPools(NodeTable(), self.options, self._plugins()))
        self.events = self.table.listen()
        self.told = len(self.state.changes)
        self.refusals = 0
        self.relaxed: dict[str, int] = {}

    def decide(self, spec: RequestSpec, count: int, alternates: int, min_count: int, keep: bool) -> None:
        names = []
        for _ in range(count):
            self.consumers += 1
            names.append(uuid_of(0xA00000 + self.consumers))
        try:
            wanted = placement_queries(spec, FilterFacts(self.table, self.options))
        except BadRequestSpec:
            return
        hosts_for = HostRequest(spec, tuple(names), 0, min_count, run="run")
        request = SchedulingRequest.of(hosts_for, wanted, self.options, self.now)
        plugins = self._plugins()
        try:
            outcome = self.decided(request, plugins.filters)
        except SchedulerError:
            return
        self.check(request, plugins, outcome)
        if keep and outcome.destinations:
            self._decided(request, HostPools(self.table, self.options, plugins), keep=True)
            self.held += names

    def decided(self, request: SchedulingRequest, filters: Any) -> Outcome:
        """The outcome of a question, which is taken back."""
        state = State(self.fleet, {}, 0.0)
        state.name(request.instances)
        try:
            plugins = Plugins(filters, self._plugins().weighers)
            return Decide(request, HostPools(self.table, self.options, plugins)).run(state).outcome
        finally:
            state.take_back(0)
            self.table.release(*request.instances)

    def check(self, request: SchedulingRequest, plugins: Plugins, outcome: Outcome) -> None:
        before = self._used()
        snapshot = FleetSnapshot(self.fleet, HostPools(self.table, self.options, plugins))
        reasons = explain(snapshot, request)
        assert self._used() == before
        assert replace(self.by_the_copy(request), version=reasons.version) == reasons
        self._check_counts(reasons)
        fits = len(outcome.destinations) == len(request.instances)
        assert reasons.sentence.startswith("it fits") == fits, (reasons, outcome)
        if fits:
            assert reasons.left > 0
            return
        self.refusals += 1
        placed = len(outcome.destinations) or len(
            {each.instance for each in outcome.tries if not each.refusal}
        )
        assert reasons.placed == placed
        assert "host" in reasons.public
        assert not any(name in reasons.public for name in self._hosts())
        if not reasons.left:
            assert reasons.complete
        distances = [each.distance for each in reasons.misses]
        assert distances == sorted(distances)
        for relaxation in reasons.relaxations:
            self.relaxed[relaxation.kind] = self.relaxed.get(relaxation.kind, 0) + 1
            changed, filters = applied(snapshot, request, plugins.filters, relaxation)
            found = self.decided(changed, filters)
            assert found.destinations, (relaxation, found)
        sizes = [each.distance for each in reasons.relaxations]
        assert sizes == sorted(sizes)

    def by_the_copy(self, request: SchedulingRequest) -> Reasons:
        """The reasons that a copy finds that is told what has happened since the last ones."""
        changes = self.state.changes[self.told :]
        self.told = len(self.state.changes)
        commit = Commit(self.copy.fleet.version + 1, 0.0, encode_changes(changes))
        self.table.seen_since(request.oldest_heartbeat)
        refused = Refused(
            request.spec,
            request.instances,
            request.min_count,
            request.now,
            0,
            0,
            self.table.silent(),
        )
        answer = self.copy.handle(
            encode_message(CopyMessage([commit], self.events, self.table.version, refused))
        )
        self.events.clear()
        reasons = decode_reasons(answer or b"")
        assert reasons is not None
        return reasons

    def _check_counts(self, reasons: Reasons) -> None:
        assert reasons.hosts == len(self.table)
        assert sum(stage.hosts for stage in reasons.stages) + reasons.left == reasons.hosts
        trees = sum(stage.trees or 0 for stage in reasons.stages)
        assert trees + reasons.trees_left == reasons.trees
        assert reasons.providers == len(self.fleet)
        named: list[str] = []
        for stage in reasons.stages:
            joins_groups = stage.name.startswith(("group_policy", "same_subtree", "isolated"))
            alone = stage.hosts if joins_groups or stage.hosts_alone is None else stage.hosts_alone
            assert 0 <= stage.hosts <= alone
            if stage.kind in ("place", "filter", "candidate"):
                names = list(unfolded(stage.removed.names))
                assert len(names) + stage.removed.left_out == stage.hosts
                named += names
        assert len(set(named)) == len(named)
        assert set(named) <= set(self._hosts())

    def _used(self) -> tuple[object, ...]:
        fleet = self.fleet
        usages = [fleet.usages(row) for row in fleet.rows().tolist()]
        return usages, sorted(instance for instance, _ in self.table.outstanding)

    def _hosts(self) -> list[str]:
        return [self.table.hosts[index] for index in range(self.table.size)]


def applied(
    snapshot: FleetSnapshot, request: SchedulingRequest, filters: Any, relaxation: Relaxation
) -> tuple[SchedulingRequest, list[Filter]]:
    """A question with a relaxation, made of nothing but what the relaxation says."""
    spec = request.spec
    match relaxation.kind:
        case "amount":
            constraint = named(request, relaxation, snapshot.fleet)
            changed = in_each(request, constraint, with_amount, relaxation.after or 0)
            flavor = spec.flavor
            if not constraint.group and constraint.names == ("VCPU",) and flavor.vcpus == relaxation.before:
                flavor = replace(flavor, vcpus=relaxation.after)
            changed = replace(changed, spec=replace(spec, flavor=flavor))
        case "constraint":
            constraint = named(request, relaxation, snapshot.fleet)
            changed = in_each(request, constraint, without)
            same = [each for each in filters if each.same_cause is not None]
            return changed, [excusing(each, constraint) if each in same else each for each in filters]
        case "filter":
            assert any(each.name == relaxation.name for each in filters)
            return request, [each for each in filters if each.name != relaxation.name]
        case "place":
            empty = frozenset[str]() if relaxation.name == "ignore_hosts" else spec.ignore_hosts
            places = tuple(each for each in request.places if each.step != relaxation.name)
            changed = replace(request, spec=replace(spec, ignore_hosts=empty), places=places)
        case "group":
            group = spec.group
            assert group is not None
            after = relaxation.after
            other = None if after is None else replace(group, max_server_per_host=after)
            changed = replace(request, spec=replace(spec, group=other))
        case "count":
            names = request.instances[: relaxation.after]
            changed = replace(request, instances=names, min_count=len(names))
        case "pair":
            first, second = relaxation.parts
            changed, left = applied(snapshot, request, filters, first)
            return applied(snapshot, changed, left, second)
        case "cells":
            flavor = replace(spec.flavor, **{relaxation.name: relaxation.after})
            changed = snapshot.with_spec(request, replace(spec, flavor=flavor))
        case "devices":
            name, before, after = relaxation.name, relaxation.before, relaxation.after
            extra = dict(spec.flavor.extra_specs)
            text = extra["pci_passthrough:alias"]
            extra["pci_passthrough:alias"] = text.replace(f"{name}:{before}", f"{name}:{after}")
            changed = snapshot.with_spec(
                request, replace(spec, flavor=replace(spec.flavor, extra_specs=extra))
            )
    return changed, list(filters)


def named(request: SchedulingRequest, relaxation: Relaxation, fleet: Fleet) -> Constraint:
    """The constraint that a relaxation is of, of whichever query."""
    [constraint] = {
        each
        for query in request.queries
        for each in constraints_of(query)
        if str(with_names(each, fleet)) == relaxation.name
    }
    return constraint


def in_each(
    request: SchedulingRequest, constraint: Constraint, change: Any, *arguments: int
) -> SchedulingRequest:
    """A question whose queries are changed that have a constraint."""
    query, *fallbacks = (
        change(query, constraint, *arguments) if constraint in constraints_of(query) else query
        for query in request.queries
    )
    return replace(request, query=query, fallbacks=tuple(fallbacks))


@st.composite
def greedy(draw: st.DrawFn) -> Step:
    """A request that many hosts cannot take."""
    wishes: dict[str, Any] = {}
    extra: dict[str, str] = {}
    for wish in draw(st.lists(st.sampled_from(_WISHES), max_size=3, unique=True)):
        if wish == "zone":
            wishes["availability_zone"] = draw(st.sampled_from(["az0", "az1", "moon"]))
        elif wish == "trait":
            extra["trait:CUSTOM_FAST"] = draw(st.sampled_from(["required", "forbidden"]))
        elif wish == "ignore":
            wishes["ignore_hosts"] = frozenset(f"host{host}" for host in range(draw(st.integers(1, HOSTS))))
        elif wish == "destination":
            wishes["requested_destination"] = RequestedDestination(cell=draw(st.sampled_from(["cell0", "x"])))
        elif wish == "group":
            policy: GroupPolicy = draw(st.sampled_from(["affinity", "anti-affinity"]))
            wishes["group"] = ServerGroup("g", policy, (), draw(st.integers(1, 2)))
        else:
            amount = draw(st.integers(1, 9))
            wishes["requested_resources"] = (RequestGroup({"VCPU": amount}, "_port"),)
            extra["group_policy"] = draw(st.sampled_from(["none", "isolate"]))
    flavor = Flavor(
        "greedy",
        draw(st.integers(1, 12)),
        draw(st.sampled_from([512, 3000, 5000])),
        draw(st.sampled_from([5, 35, 45])),
        extra,
    )
    count = draw(st.sampled_from([1, 1, 1, 2, 5]))
    least = draw(st.sampled_from([1, count, count]))
    spec = RequestSpec(project_id="p", user_id="u", flavor=flavor, **wishes)
    return lambda world: world.decide(spec, count, 0, least, keep=True)


_WISHES = ["zone", "trait", "ignore", "destination", "group", "port"]
