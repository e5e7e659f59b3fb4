"""A world of hosts that goes through whatever may happen to it, and decisions that are made in it twice."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int64
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.reasons import WeighedHost
from roost.model.request import RequestGroup
from roost.model.spec import Flavor, RequestedDestination, RequestSpec, ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT, SHARING_TRAIT
from roost.placement.commands.allocations import FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddTrait
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.errors import PlacementError
from roost.scheduler import SchedulerOptions
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.gateways.local import Decide
from roost.scheduler.kept.keeper import Keeper
from roost.scheduler.nodes import NodeTable
from roost.scheduler.offers import HostView
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.outcome import MOST_WEIGHED, Outcome
from roost.scheduler.plugins import Looks, filters, weighers
from roost.scheduler.query import placement_queries
from roost.scheduler.question import Progress, Question
from roost.scheduler.recording import weighed_in
from roost.scheduler.request_filters import Facts
from roost.scheduler.request_options import RequestFilterOptions
from roost.scheduler.requested.numa_groups import NUMA_ROOT
from roost.scheduler.selection import Plugins
from support.clouds import AGGREGATES, NOW, TRAITS, holding, join, replace_report, report, uuid_of
from support.numa_hosts import reported, reported_cell
from support.offering import by_metrics

HOSTS = 14

OPTIONS = [
    SchedulerOptions(),
    SchedulerOptions(multipliers={"RAMWeigher": -1.0, "CPUWeigher": -2.5, "DiskWeigher": 0.0}),
    SchedulerOptions(host_subset_size=3, plugins=by_metrics({"heat": -1.0}, required=False)),
    SchedulerOptions(plugins=by_metrics({"heat": -1.0}), multipliers={"BuildFailureWeigher": -2.0}),
    SchedulerOptions(multipliers={"roominess": 3.0}),
    SchedulerOptions(filters=(*DEFAULT_FILTERS, "NUMATopologyFilter")),
    SchedulerOptions(
        filters=(
            *DEFAULT_FILTERS,
            "AggregateInstanceExtraSpecsFilter",
            "AggregateMultiTenancyIsolation",
            "AggregateTypeAffinityFilter",
            "AggregateNumInstancesFilter",
        )
    ),
    SchedulerOptions(request_filters=RequestFilterOptions(numa_model="trees")),
]

FLAVORS = [
    Flavor("small", 1, 512, 5),
    Flavor("large", 3, 2048, 20),
    Flavor("diskless", 2, 512, 0),
    Flavor("ssd", 1, 1024, 5, {"ssd": "yes"}),
    Flavor("fast", 1, 512, 5, {"trait:CUSTOM_FAST": "required"}),
    Flavor("gpu", 1, 512, 5, {"resources:VGPU": "1"}),
    Flavor("gpus", 1, 512, 5, {"resources_a:VGPU": "1", "resources_b:VGPU": "1", "group_policy": "isolate"}),
    Flavor("numa", 2, 512, 5, {"resources_a:VCPU": "1", "resources_b:VCPU": "1", "group_policy": "none"}),
    Flavor("pinned", 1, 512, 5, {"hw:cpu_policy": "dedicated"}),
    Flavor("pinned, two cells", 2, 512, 5, {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}),
    Flavor("two cells", 2, 512, 5, {"hw:numa_nodes": "2", "hw:mem_page_size": "large"}),
    Flavor("not red", 1, 512, 5, {"trait:CUSTOM_RED": "forbidden"}),
    Flavor("cells", 2, 512, 5, {"hw:numa_nodes": "2"}),
    Flavor("wide", 9, 512, 5),
    Flavor("granular", 1, 512, 5, {f"resources1:{name}": "1" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}),
]

METADATA = [
    {"availability_zone": "az0"},
    {"availability_zone": "az1", "ram_weight_multiplier": "-1"},
    {"ssd": "no, yes", "project": "p"},
    {"cpu_weight_multiplier": "2.5", "project": "q"},
    {"build_failure_weight_multiplier": "3", "ram_weight_multiplier": "much"},
]


class Roominess:
    """A weigher of another package, which looks at what hosts have; for those that have nothing no number."""

    name = "roominess"
    multiplier_key = "roominess_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.TREE

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64:
        with np.errstate(all="ignore"):
            return hosts.free("VCPU") / hosts.capacity("VCPU")


class Projects:
    """A filter with a key: hosts that an aggregate keeps to a project are for that project only."""

    name = "projects"
    looks_at = Looks.REPORT

    def key(self, question: Question) -> Hashable | None:
        return question.spec.project_id

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        labels = hosts.table.metadata("project")
        if labels is None:
            return None
        return labels.judged(lambda values: not values or question.spec.project_id in values, hosts.index) > 0


class RoomForTwo:
    """A filter that looks at trees and depends on claims: there must be room for one more of the kind."""

    name = "room_for_two"
    looks_at = Looks.TREE
    depends_on_claims = True

    def key(self, question: Question) -> Hashable | None:
        return question.spec.flavor.vcpus if "roomy" in question.spec.scheduler_hints else None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        return hosts.free("VCPU") >= 2 * question.spec.flavor.vcpus


def numbers_of(hosts: HostView) -> Int64:
    """The numbers that uuids of hosts were made from: int64[n]."""
    nodes = hosts.table.nodes
    return np.array([int(nodes[index][-12:], 16) for index in hosts.index.tolist()], dtype=np.int64)


class Odd:
    """A foreign filter, which judges some requests only, and is asked again after each claim if so told."""

    name = "odd"

    def __init__(self, again: bool) -> None:
        self.depends_on_claims = again

    def key(self, question: Question) -> Hashable | None:
        return "odd" if "odd" in question.spec.scheduler_hints else None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        return (numbers_of(hosts) + sum(progress.members.values())) % 3 > 0


class Taste:
    """A foreign weigher, which judges some requests only."""

    name = "taste"
    multiplier_key = "taste_weight_multiplier"
    default_multiplier = 1.5

    def key(self, question: Question) -> Hashable | None:
        return "taste" if "taste" in question.spec.scheduler_hints else None

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64 | None:
        if question.spec.flavor.name == "large":
            return None
        return (numbers_of(hosts) % 4).astype(np.float64) - hosts.free("VCPU")


class Company:
    """A weigher of a domain: members of the group in the host's cell."""

    name = "company"
    multiplier_key = "company_weight_multiplier"
    default_multiplier = -1.0
    looks_at = Looks.REPORT | Looks.MEMBERS
    minval = 0.5

    def key(self, question: Question) -> Hashable | None:
        return question.spec.group and question.spec.group.uuid

    def domain(self, hosts: HostView) -> Int64:
        return hosts.table.cell[hosts.index].astype(np.int64)

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64 | None:
        cell = hosts.table.cell
        counts = np.zeros(len(hosts.table.cells))
        for index, members in progress.members.items():
            # Members elsewhere are in no cell.
            if index >= 0:
                counts[cell[index]] += members
        return counts[cell[hosts.index]]


class World:
    """A fleet and a node table, changed by the ledger's own commands."""

    def __init__(self, options: SchedulerOptions) -> None:
        self.fleet = Fleet()
        self.state = State(self.fleet, {}, 0.0)
        self.table = NodeTable()
        self.now = NOW
        self.options = options
        self.keeping = self._plugins()
        self.consumers = 0
        self.held: list[str] = []
        self.batch = 0
        self.run(RegisterStandardNames())
        for trait in TRAITS:
            self.run(AddTrait(trait))

    def run(self, command: Any) -> bool:
        mark = len(self.state.changes)
        self.state.name(command.consumers())
        try:
            command.run(self.state)
        except PlacementError:
            self.state.take_back(mark)
            return False
        return True

    def decide(self, spec: RequestSpec, count: int, alternates: int, min_count: int, keep: bool) -> None:
        names = []
        for _ in range(count):
            self.consumers += 1
            names.append(uuid_of(0xA00000 + self.consumers))
        try:
            wanted = placement_queries(spec, Facts(self.table, self.options))
        except BadRequestSpec:
            return
        asked = Question(
            "run",
            spec,
            wanted.query,
            tuple(names),
            alternates,
            min_count,
            self.now,
            self.options,
            fallbacks=wanted.fallbacks,
            places=wanted.places,
        )
        with patch.object(Keeper, "field", return_value=None):
            again = self._restarted()
            # The rows of the places are those of the table.
            there = placement_queries(spec, Facts(again, self.options)).places
            anew = msgspec.structs.replace(asked, places=there)
            expected = self._decided(anew, again, self._plugins(), keep=False)
        assert self._decided(asked, self.table, self.keeping, keep) == expected
        if keep:
            self.held += names

    def _restarted(self) -> NodeTable:
        """The table of a process that has just started: other rows, and other nodes first."""
        nodes = [node for node in self.table.nodes if self.table.index_of_node(node) is not None]
        indexes = [self.table.index_of_node(node) for node in dict.fromkeys(reversed(nodes))]
        again = NodeTable(self.table.report(index) for index in indexes if index is not None)
        for index in indexes:
            if index is not None:
                join(again, self.table.nodes[index], *self.table.aggregates(index))
        for instance, taken in self.table.outstanding:
            index = again.index_of_node(self.table.nodes[taken.index])
            assert index is not None
            again.claim(instance, index, taken.memory_mb, taken.disk_mb)
        return again

    def _decided(self, asked: Question, table: NodeTable, plugins: Plugins, keep: bool) -> Any:
        command = Decide(asked, table, plugins)
        mark = len(self.state.changes)
        self.state.name(command.consumers())
        try:
            outcome = command.run(self.state).outcome
        except SchedulerError as error:
            self.state.take_back(mark)
            return str(error)
        if not keep:
            self.state.take_back(mark)
        weighed = weighed_in(outcome)
        assert_weights_are_explained(outcome, weighed)
        return msgspec.structs.replace(outcome, weighed=()), weighed

    def _plugins(self) -> Plugins:
        weighing: list[Any] = [*weighers(self.options)]
        filtering: list[Any] = [*filters(self.options)]
        if Roominess.name in self.options.multipliers:
            weighing = [Taste(), *weighing, Roominess(), Company()]
            filtering = [Odd(True), Projects(), RoomForTwo(), *filtering, Odd(False)]
        return Plugins(filtering, weighing)


def assert_weights_are_explained(outcome: Outcome, found: Sequence[WeighedHost]) -> None:
    """The numbers of the first destination make up the weights that it has."""
    if not outcome.destinations:
        assert not found
        return
    first = outcome.destinations[0]
    selections = (first.selected, *first.alternates)[:MOST_WEIGHED]
    assert [one.host for one in found] == [one.host for one in selections]
    for weighed, selection in zip(found, selections, strict=True):
        parts = [number.normalised * number.multiplier for number in weighed.numbers]
        assert sum(parts) == weighed.weight == selection.weight


Step = Callable[[World], object]


def _host(draw: st.DrawFn) -> int:
    return draw(st.integers(0, HOSTS - 1))


@st.composite
def decisions(draw: st.DrawFn) -> Step:
    wishes: dict[str, Any] = {}
    kinds = ["zone", "traits", "host", "cell", "ignore", "retried", "group", "hints", "port"]
    for wish in draw(st.lists(st.sampled_from(kinds), max_size=2)):
        if wish == "zone":
            wishes["availability_zone"] = draw(st.sampled_from(["az0", "az1", "nova"]))
        elif wish == "traits":
            wishes["required_traits"] = frozenset({draw(st.sampled_from(TRAITS))})
        elif wish == "host":
            wishes["requested_destination"] = RequestedDestination(host=f"host{_host(draw)}")
        elif wish == "cell":
            wishes["requested_destination"] = RequestedDestination(
                cell=draw(st.sampled_from(["cell0", "cell1"]))
            )
        elif wish == "retried":
            wishes["retried_hosts"] = frozenset(f"host{_host(draw)}" for _ in range(draw(st.integers(1, 4))))
        elif wish == "ignore":
            wishes["ignore_hosts"] = frozenset(f"host{_host(draw)}" for _ in range(draw(st.integers(1, 4))))
        elif wish == "group":
            members = draw(st.lists(st.builds("host{}".format, st.integers(0, HOSTS - 1)), max_size=4))
            policy = draw(st.sampled_from(["affinity", "anti-affinity", "anti-affinity"]))
            wishes["group"] = ServerGroup("g", policy, tuple(members), draw(st.integers(1, 2)))
        elif wish == "hints":
            hints = draw(st.sets(st.sampled_from(["odd", "taste", "roomy"]), min_size=1))
            wishes["scheduler_hints"] = dict.fromkeys(hints, ("yes",))
        else:
            wishes["requested_resources"] = (RequestGroup({"VCPU": draw(st.integers(1, 2))}, "_port"),)
    flavor = draw(st.sampled_from(FLAVORS))
    project = draw(st.sampled_from(["p", "p", "q"]))
    count = draw(st.sampled_from([1, 1, 1, 2, 4]))
    alternates = draw(st.integers(0, 3))
    least = draw(st.sampled_from([1, count]))
    keep = draw(st.sampled_from([True, True, False]))

    def step(world: World) -> None:
        spec = RequestSpec(project_id=project, user_id="u", flavor=flavor, **wishes)
        place = spec.requested_destination
        if place is None or place.host is None or world.table.index(place.host) is not None:
            world.decide(spec, count, alternates, least, keep)

    return step


@st.composite
def happenings(draw: st.DrawFn) -> Step:
    """Something happens to one provider."""
    host = _host(draw)
    uuid = uuid_of(host)
    kind = draw(st.sampled_from(_KINDS))
    number = draw(st.integers(0, 3))
    if kind == "inventory":
        inventories = draw(_inventories())
        return lambda world: world.run(SetInventories(uuid, inventories, None))
    if kind == "traits":
        traits = draw(st.sets(st.sampled_from([*TRAITS, DISABLED_TRAIT, SHARING_TRAIT]), max_size=1))
        return lambda world: world.run(SetTraits(uuid, frozenset(traits), None, add_custom=True))
    if kind == "aggregates":
        aggregates = draw(st.sets(st.sampled_from(AGGREGATES), max_size=2))
        return lambda world: world.run(SetAggregates(uuid, frozenset(aggregates), None))
    if kind == "use":
        write = holding(uuid_of(0xC00000 + draw(st.integers(0, 9_999))), {uuid: {"VCPU": number + 1}})
        return lambda world: world.run(WriteAllocations((write,)))
    if kind == "free":
        return lambda world: world.run(FreeConsumers(tuple(world.held[-1 - number : len(world.held)])))
    if kind == "batch":
        # A batch ends: all is taken back, and comes again as a commit.
        def again(world: World) -> None:
            changes = world.state.changes.copy()
            world.state.take_back(world.batch)
            for change in changes[world.batch :]:
                world.state.apply(change)
            world.batch = len(world.state.changes)

        return again
    if kind == "child":
        return lambda world: world.run(CreateProvider(uuid_of(0xD0000 + host), f"child{host}", uuid))
    if kind in ("device", "cpus"):
        child = uuid_of(0xE0000 + 4 * host + number)
        has = (
            {"VGPU": Inventory(2)}
            if kind == "device"
            else {"VCPU": Inventory(3), "MEMORY_MB": Inventory(1024)}
        )
        return lambda world: (
            world.run(CreateProvider(child, f"{kind} {child}", uuid))
            and world.run(SetInventories(child, has, None))
            and kind == "cpus"
            and world.run(SetTraits(child, frozenset({NUMA_ROOT}), None, add_custom=False))
        )
    if kind == "pool":
        pool = uuid_of(0xF0000 + number % 2)

        def share(world: World) -> None:
            world.run(CreateProvider(pool, f"pool {pool}", None))
            world.run(SetInventories(pool, {"DISK_GB": Inventory(20 + 40 * number)}, None))
            world.run(SetTraits(pool, frozenset({SHARING_TRAIT}), None, add_custom=True))
            world.run(SetAggregates(pool, frozenset(AGGREGATES[number:]), None))

        return share
    if kind == "childless":
        return lambda world: world.run(DeleteProvider(uuid_of(0xD0000 + host)))
    if kind in ("moved", "removed"):
        below = uuid_of(0xE0000 + 4 * host + number)
        above = None if number == 3 else uuid_of(draw(st.integers(0, HOSTS - 1)))
        if kind == "removed":
            return lambda world: world.run(DeleteProvider(below))
        return lambda world: (
            below in world.fleet and world.run(UpdateProvider(below, f"moved {below}", above))
        )
    if kind == "no pool":
        return lambda world: world.run(DeleteProvider(uuid_of(0xF0000 + number % 2)))
    if kind == "gone":
        return lambda world: world.run(DeleteProvider(uuid))
    return lambda world: make(world, host)


_KINDS = [
    "inventory",
    "traits",
    "aggregates",
    "use",
    "use",
    "free",
    "batch",
    "child",
    "childless",
    "device",
    "device",
    "cpus",
    "moved",
    "removed",
    "pool",
    "no pool",
    "gone",
    "come",
]


@st.composite
def reports(draw: st.DrawFn) -> Step:
    host = _host(draw)
    kind = draw(
        st.sampled_from(
            [
                "seen",
                "enabled",
                "failed",
                "metrics",
                "aggregates",
                "troubled",
                "alone",
                "cell",
                "node",
                "clock",
                "cells",
            ]
        )
    )
    number = draw(st.integers(0, 3))

    def step(world: World) -> None:
        if kind == "clock":
            world.now += (1.0, 40.0, 70.0, -30.0)[number]
            return
        index = world.table.index(f"host{host}")
        old = report(f"host{host}", uuid_of(host)) if index is None else world.table.report(index)
        joined = {
            "aggregates": [HostAggregate(AGGREGATES[number], AGGREGATES[number], METADATA[number])],
            "troubled": [HostAggregate(AGGREGATES[0], AGGREGATES[0], METADATA[4])],
            "alone": [],
        }.get(kind)
        if joined is not None:
            join(world.table, old.node, *joined)
            return
        new: dict[str, object] = {
            "seen": {"last_seen": world.now - 20.0 * number},
            "enabled": {"enabled": number > 1},
            "failed": {"failed_builds": number % 2},
            "metrics": {"metrics": {"heat": 10.0 * number} if number else {}},
            "cell": {"cell": f"cell{number % 2}"},
            "cells": {"numa_topology": None if number == 3 else _cells(number)},
            "node": {"node": uuid_of((host + number % 2) % HOSTS)},
        }[kind]
        world.table.update([replace_report(old, **new)])

    return step


@st.composite
def _inventories(draw: st.DrawFn) -> dict[str, Inventory]:
    found = {
        "VCPU": Inventory(draw(st.sampled_from([4, 8])), allocation_ratio=draw(st.sampled_from([1.0, 1.5]))),
        "MEMORY_MB": Inventory(draw(st.sampled_from([2048, 4096]))),
        "DISK_GB": Inventory(
            draw(st.sampled_from([40, 40, 10])), step_size=draw(st.sampled_from([1, 1, 1, 5]))
        ),
    }
    if not draw(st.integers(0, 5)):
        del found["DISK_GB"]
    if not draw(st.integers(0, 5)):
        found["VCPU"] = Inventory(8, min_unit=2)
    if not draw(st.integers(0, 2)):
        found["PCPU"] = Inventory(4)
    return found


def _cells(pinned: int) -> dict[str, Any]:
    """What a host of two cells reports, in one of which CPUs are pinned."""
    pages = {4: 2**18, 2048: 300}
    first = reported_cell(0, range(3), pages=pages, pinned_cpus=list(range(pinned)))
    return reported(first, reported_cell(1, range(3, 6), pages=pages))


def make(world: World, host: int, inventories: dict[str, Inventory] | None = None) -> None:
    uuid = uuid_of(host)
    if world.run(CreateProvider(uuid, f"name{host}", None)):
        stock = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096), "DISK_GB": Inventory(40)}
        world.run(SetInventories(uuid, inventories or stock, None))


@st.composite
def made(draw: st.DrawFn) -> Step:
    """Hosts to begin with, some of them in use."""
    present = draw(st.lists(st.integers(0, HOSTS - 1), min_size=3, unique=True))
    inventories = {host: draw(st.none() | _inventories()) for host in present}
    cells = [draw(st.sampled_from(["cell0", "cell0", "cell1"])) for _ in present]

    def step(world: World) -> None:
        for host, stock in inventories.items():
            make(world, host, stock)
        world.table.update(
            report(
                f"host{host}",
                uuid_of(host),
                cell=cell,
                metrics={"heat": float(host)},
                numa_topology=_cells(host % 2) if host % 3 else None,
            )
            for host, cell in zip(present, cells, strict=True)
        )

    return step
