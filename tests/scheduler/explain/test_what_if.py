"""As many fit as are really placed one by one, and added hosts are like real ones."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roost.fleet.hardware.host_topology import decoded
from roost.model.aggregate import HostAggregate
from roost.model.folded_names import unfolded
from roost.model.inventory import Inventory
from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec, ServerGroup
from roost.model.what_if import MoreHosts, Scenario, WhatIf
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.scheduler import SchedulerOptions
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.explain.scenario import Supposition, add_hosts
from roost.scheduler.explain.what_if import what_if
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.gateways.local import Decide
from roost.scheduler.plugins.plugins import Named, Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import AGGREGATES, NOW, flat, join, report, spec, uuid_of
from support.decided_worlds import OPTIONS, Odd, World
from support.decisions import Step, decisions, happenings, made, reports
from support.explaining import greedy
from support.numa_hosts import enveloped, reported, reported_cell

LIMIT = 60
AS_IT_IS = Scenario()


class SupposingWorld(World):
    """A world in which each decision is asked as a what-if question instead, and the answer is checked.

    ``answers``: how many questions were answered with a refusal of the next instance.
    """

    def __init__(self, options: SchedulerOptions) -> None:
        super().__init__(options)
        self.answers = 0

    def decide(self, spec: RequestSpec, count: int, alternates: int, min_count: int, keep: bool) -> None:
        if self.options.host_subset_size > 1:
            return
        try:
            found = self.supposed(spec)
        except SchedulerError:
            return
        assert found.complete
        assert found.limited == (found.fits == LIMIT)
        assert sum(each.instances * each.hosts for each in found.where) == found.fits
        assert sum(each.hosts for each in found.where) == found.on_hosts
        mark, before = len(self.state.changes), self._before()
        placed = self.placed(spec)
        self.state.take_back(mark)
        self.table.release(*self.names())
        assert placed == found.fits
        if not found.limited:
            self.answers += 1
            assert isinstance(found.binds, Reasons)
            assert not found.binds.sentence.startswith("it fits")
        assert self._before() == before
        if keep:
            self.consumers += count
            self.placed(spec, [uuid_of(0xA00000 + self.consumers - each) for each in range(count)])

    def supposed(self, spec: RequestSpec, scenario: Scenario = AS_IT_IS) -> WhatIf:
        """The answer, on a copy of fleet and table."""
        fleet, table, before = self.fleet.fork(), self._restarted(), self._before()
        asked = Supposition(spec, self.options, LIMIT, self.now, scenario)
        try:
            pools = HostPools(table, self.options, self._plugins())
            return what_if(fleet, pools, asked, explaining=0.0)
        finally:
            assert self._before() == before

    def _plugins(self) -> Plugins:
        """Without the filter that looks at members and does not say so: it is asked once a run, so that
        one run of many instances, as a what-if question is, differs from many runs of one."""
        plugins = super()._plugins()
        lies = [
            each for each in plugins.filters if isinstance(each.plugin, Odd) and not each.depends_on_claims
        ]
        return Plugins([each for each in plugins.filters if each not in lies], plugins.weighers)

    def names(self) -> list[str]:
        return [uuid_of(0xB00000 + number) for number in range(LIMIT)]

    def placed(self, spec: RequestSpec, names: Sequence[str] = ()) -> int:
        """How many are placed by runs of one instance each, which stay."""
        for number, name in enumerate(names or self.names()):
            wanted = placement_queries(spec, FilterFacts(self.table, self.options))
            hosts_for = HostRequest(spec, (name,), 0, 1, run="run")
            request = SchedulingRequest.of(hosts_for, wanted, self.options, self.now)
            self.state.name((name,))
            pools = HostPools(self.table, self.options, self._plugins())
            decided = Decide(request, pools).run(self.state)
            if not decided.outcome.destinations:
                return number
            if spec.group is not None:
                # As by a conductor, which tells of all members that it knows.
                hosts = (*spec.group.hosts, decided.outcome.destinations[0].selected.host)
                spec = replace(spec, group=replace(spec.group, hosts=hosts))
        return len(names or self.names())

    def _before(self) -> tuple[Any, ...]:
        fleet = self.fleet
        usages = [fleet.usages(row) for row in fleet.rows().tolist()]
        return len(fleet), len(self.table), usages, sorted(name for name, _ in self.table.outstanding)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
_STEPS = st.lists(greedy() | decisions() | decisions() | happenings() | reports(), min_size=3, max_size=12)
CASES = (made(), _STEPS, st.sampled_from(OPTIONS))


def go(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    world = SupposingWorld(options)
    begin(world)
    for step in steps:
        step(world)


@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_as_many_fit_as_are_placed(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    go(begin, steps, options)


@pytest.mark.nightly
@settings(max_examples=2_000, deadline=None, suppress_health_check=SLOW)
@given(*CASES)
def test_as_many_fit_as_are_placed_in_thousands_of_worlds(
    begin: Step, steps: list[Step], options: SchedulerOptions
) -> None:
    go(begin, steps, options)


def _world(hosts: int) -> SupposingWorld:
    """Equal hosts with 8 VCPU each, in an aggregate, with a child each that has two devices."""
    world = SupposingWorld(SchedulerOptions())
    for host, each in enumerate(flat(hosts).providers):
        _register(world, host, each.inventories)
    return world


def _register(world: World, host: int, inventories: Any) -> None:
    uuid, child = uuid_of(host), uuid_of(0x5000 + host)
    world.run(CreateProvider(uuid, f"root{host}", None))
    world.run(SetInventories(uuid, inventories, None))
    world.run(SetTraits(uuid, frozenset({"CUSTOM_FAST"}), None, add_custom=True))
    world.run(CreateProvider(child, f"child{host}", uuid))
    world.run(SetInventories(child, {"VGPU": Inventory(2)}, None))
    world.table.update([report(f"host{host}", uuid, last_seen=NOW)])


SMALL = spec()
DEVICE = spec(extra_specs={"resources:VGPU": "1", "trait:CUSTOM_FAST": "required"})


def _where(found: WhatIf) -> dict[str, int]:
    return {name: each.instances for each in found.where for name in unfolded(each.names.names)}


def test_what_binds_is_said() -> None:
    found = _world(3).supposed(SMALL)
    assert (found.fits, found.on_hosts, found.hosts, found.limited) == (24, 3, 3, False)
    assert _where(found) == {"host0": 8, "host1": 8, "host2": 8}
    assert found.binds is not None
    assert found.binds.sentence.startswith("none of 3 hosts has 1 VCPU free")


def test_the_limit_is_said() -> None:
    found = _world(9).supposed(SMALL)
    assert (found.fits, found.limited, found.binds) == (LIMIT, True, None)


def test_a_large_group_costs_what_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each claim the filter is asked about the host of the claim, not about all members."""
    asked: list[int] = []
    named = ServerGroupAntiAffinityFilter.named

    def counted(self: ServerGroupAntiAffinityFilter, *more: Any) -> Named | None:
        asked.append(len(more[-1].members))
        return named(self, *more)

    world = _world(24)
    monkeypatch.setattr(ServerGroupAntiAffinityFilter, "named", counted)
    found = world.supposed(spec(group=ServerGroup("g", "anti-affinity")))
    assert (found.fits, found.on_hosts) == (24, 24)
    assert len(asked) > 24
    assert sum(asked) < 6 * 24


def test_drained_hosts_get_none() -> None:
    found = _world(3).supposed(SMALL, Scenario(("host1",)))
    assert found.hosts == 2
    assert _where(found) == {"host0": 8, "host2": 8}


def test_a_drained_host_that_the_request_names_gets_none() -> None:
    found = _world(2).supposed(spec(requested_host="host1"), Scenario(("host1",)))
    assert (found.fits, found.where) == (0, ())
    assert found.binds is not None


def test_added_hosts_are_as_empty_ones_that_are_registered() -> None:
    """With use, devices below them and a server group."""
    world, real = _world(2), _world(2)
    for each in (world, real):
        assert each.placed(spec(6, 6000, 1)) == 2
    for host, provider in enumerate(flat(5).providers[2:], 2):
        _register(real, host, provider.inventories)
    three = Scenario((), (MoreHosts("host0", 3),))
    apart = spec(group=ServerGroup("g", "anti-affinity"))
    for wanted in (SMALL, DEVICE, spec(5, 100, 1), spec(9), apart):
        found, expected = world.supposed(wanted, three), real.supposed(wanted)
        assert (found.fits, found.hosts, found.on_hosts) == (expected.fits, expected.hosts, expected.on_hosts)
        assert sorted(_where(found).values()) == sorted(_where(expected).values())
        assert {*_where(found)} <= {"host0", "host1", "host0+1", "host0+2", "host0+3"}
    assert found.fits == 5


@pytest.mark.parametrize("form", [dict, enveloped])
def test_added_hosts_are_in_the_same_aggregates_and_have_no_numa_use(form: Any) -> None:
    world = World(SchedulerOptions())
    _register(world, 0, flat(1).providers[0].inventories)
    cells = form(reported(reported_cell(0, cpus=range(4), pinned_cpus=[0, 1], memory_usage=512)))
    used = report("host0", uuid_of(0), numa_topology=cells, num_instances=3, free_ram_mb=10, memory_mb=8192)
    world.table.update([used])
    join(world.table, uuid_of(0), HostAggregate(AGGREGATES[0], "one", {"ssd": "yes"}))
    add_hosts(world.fleet, world.table, MoreHosts("host0", 2))
    index = world.table.index("host0+2")
    assert index is not None
    made = world.table.report(index)
    assert (made.num_instances, made.free_ram_mb) == (0, 8192)
    assert made.numa_topology is not None
    cell = decoded(made.numa_topology).cells[0]
    assert decoded(cells).cells[0].pinned
    assert (cell.pinned, cell.cpu_usage, cell.memory_used_mb) == (0, 0, 0)
    assert [each.name for each in world.table.aggregates(index)] == ["one"]
    row = world.fleet.row(made.node)
    assert world.fleet.traits_of(row) == world.fleet.traits_of(world.fleet.row(uuid_of(0)))
    assert len(world.fleet.subtree(row)) == 2


@pytest.mark.parametrize("scenario", [Scenario(("nowhere",)), Scenario((), (MoreHosts("nowhere", 1),))])
def test_a_host_that_is_not_there_is_named(scenario: Scenario) -> None:
    with pytest.raises(BadRequestSpec, match="host 'nowhere' is unknown"):
        _world(1).supposed(SMALL, scenario)


def test_a_request_is_supposed_without_constraints() -> None:
    wanted = spec(4, extra_specs={"trait:CUSTOM_RED": "required"}, ignore_hosts=frozenset({"host0"}))
    group = replace(wanted, group=ServerGroup("g", "anti-affinity"))
    for of, without, fits in (
        (wanted, (), 0),
        (wanted, ("CUSTOM_RED",), 2),
        (wanted, ("CUSTOM_RED", "ignore_hosts"), 4),
        (group, ("required CUSTOM_RED",), 1),
        (group, ("required CUSTOM_RED", "server group", "RAMWeigher"), 2),
    ):
        assert _world(2).supposed(of, Scenario(without=without)).fits == fits, without
    with pytest.raises(BadRequestSpec, match="no constraint 'CUSTOM_FAST'"):
        _world(2).supposed(wanted, Scenario(without=("CUSTOM_FAST",)))


def test_what_fits_is_counted_by_zone() -> None:
    world = _world(3)
    join(world.table, uuid_of(0), HostAggregate(AGGREGATES[0], "north", {"availability_zone": "north"}))
    zones = world.supposed(spec(4)).zones
    assert [(each.zone, each.instances, each.hosts) for each in zones] == [("north", 2, 1), ("nova", 4, 2)]
