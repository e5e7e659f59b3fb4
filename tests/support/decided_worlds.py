"""Worlds in which each decision is made from what is kept, and anew from all hosts, and compared."""

from collections.abc import Hashable, Sequence
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int64
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.reasons import WeighedHost
from roost.model.spec import Flavor, RequestSpec
from roost.placement.commands.names import AddTrait
from roost.placement.errors import PlacementError
from roost.scheduler import SchedulerOptions
from roost.scheduler.cache.equivalence_cache import EquivalenceCache
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.gateways.local import Decide
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import DEFAULT_FILTERS, RequestFilterOptions
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import GroupPlacement, HostRequest, SchedulingRequest
from roost.scheduler.run_records import weighed_in
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import MOST_WEIGHED, Outcome
from support.clouds import NOW, TRAITS, join, uuid_of
from support.offering import by_metrics, plugins

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

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64:
        with np.errstate(all="ignore"):
            return hosts.free("VCPU") / hosts.capacity("VCPU")


class Projects:
    """A filter with a key: hosts that an aggregate keeps to a project are for that project only."""

    name = "projects"
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.project_id

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        labels = hosts.table.metadata("project")
        if labels is None:
            return None
        return labels.judged(lambda values: not values or request.spec.project_id in values, hosts.index) > 0


class RoomForTwo:
    """A filter that looks at trees and depends on claims: there must be room for one more of the kind."""

    name = "room_for_two"
    looks_at = Looks.TREE
    depends_on_claims = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.flavor.vcpus if "roomy" in request.spec.scheduler_hints else None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        return hosts.free("VCPU") >= 2 * request.spec.flavor.vcpus


def numbers_of(hosts: HostView) -> Int64:
    """The numbers that uuids of hosts were made from: int64[n]."""
    nodes = hosts.table.nodes
    return np.array([int(nodes[index][-12:], 16) for index in hosts.index.tolist()], dtype=np.int64)


class Odd:
    """A foreign filter, which judges some requests only, and is asked again after each claim if so told."""

    name = "odd"

    def __init__(self, again: bool) -> None:
        self.depends_on_claims = again

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return "odd" if "odd" in request.spec.scheduler_hints else None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        return (numbers_of(hosts) + sum(progress.members.values())) % 3 > 0


class Taste:
    """A foreign weigher, which judges some requests only."""

    name = "taste"
    multiplier_key = "taste_weight_multiplier"
    default_multiplier = 1.5

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return "taste" if "taste" in request.spec.scheduler_hints else None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if request.spec.flavor.name == "large":
            return None
        return (numbers_of(hosts) % 4).astype(np.float64) - hosts.free("VCPU")


class Company:
    """A weigher that reads other hosts: members of the group in the host's cell."""

    name = "company"
    multiplier_key = "company_weight_multiplier"
    default_multiplier = -1.0
    looks_at = Looks.REPORT | Looks.MEMBERS
    reads_other_hosts = True
    minval = 0.5

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.group and request.spec.group.uuid

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
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
        self.keeping = HostPools(self.table, options, self._plugins())
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
            wanted = placement_queries(spec, FilterFacts(self.table, self.options))
        except BadRequestSpec:
            return
        hosts_for = HostRequest(spec, tuple(names), alternates, min_count, run="run")
        asked = SchedulingRequest.of(hosts_for, wanted, self.options, self.now)
        with patch.object(EquivalenceCache, "pool", return_value=None):
            again = self._restarted()
            # The rows of the places are those of the table.
            there = placement_queries(spec, FilterFacts(again, self.options)).places
            anew = msgspec.structs.replace(asked, places=there)
            expected = self._decided(anew, HostPools(again, self.options, self._plugins()), keep=False)
        assert self._decided(asked, self.keeping, keep) == expected
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

    def _decided(self, asked: SchedulingRequest, pools: HostPools, keep: bool) -> Any:
        command = Decide(asked, pools)
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
        found = Plugins.enabled(self.options)
        if Roominess.name not in self.options.multipliers:
            return found
        return plugins(
            *(Odd(True), Projects(), RoomForTwo(), *found.filters, Odd(False)),
            weighers=[Taste(), *found.weighers, Roominess(), Company()],
        )


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
