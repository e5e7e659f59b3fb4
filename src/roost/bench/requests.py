"""The kinds of requests that ``roost bench decide`` measures."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, Literal

import msgspec
import numpy as np

from roost.bench.fleets import GPU, NODE_MEMORY_MB, SEED
from roost.fleet.columns import Float64
from roost.fleet.hardware.pci_aliases import aliases_from
from roost.model.spec import Flavor, RequestSpec, ServerGroup
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import PciOptions
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.request.demand.numa_groups import NumaModel
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

Shapes = Literal["repeated", "fresh"]
"""The flavors of requests: four that are repeated, or a fresh one for each request."""

RequestKind = Literal[
    "plain",
    "group",
    "ignore",
    "project",
    "foreign",
    "same_subtree",
    "numa",
    "pci",
    "numa_pci",
    "numa_trees",
    "splittable",
    "split",
]
"""The kinds of requests.

``plain``: a flavor alone. ``group``: an anti-affinity group with members. ``ignore``: hosts to ignore.
``project``: `PROJECTS` projects in turn, and the filter that isolates projects. ``foreign``: a weigher that
declares nothing. ``same_subtree``: a group of VCPU and memory for each of `NUMA_NODES` NUMA nodes, each with
a VF below the same node. ``numa``: dedicated CPUs in one NUMA cell or two of the objects that hosts report.
``pci``: a PCI device by its alias. ``numa_pci``: dedicated CPUs in one cell or two, with a device in one of
these. ``numa_trees``: two NUMA nodes, on child providers. ``splittable``: a flavor alone, of which processors
and memory may be split; it fits unsplit. ``split``: the same with more memory than a NUMA node has."""

NEEDED_FLEETS: Final[Mapping[str, str]] = {
    "same_subtree": "nested",
    "numa": "pinned",
    "pci": "devices",
    "numa_pci": "devices",
    "numa_trees": "nested",
    "splittable": "nested",
    "split": "nested",
}
"""Kind of requests -> the only fleet whose hosts fit them."""
PROJECTS: Final = 1_000
NUMA_NODES: Final = 2
REPEATED: Final = (
    Flavor("small", 1, 2_048, 10),
    Flavor("medium", 2, 4_096, 20),
    Flavor("large", 4, 16_384, 40),
    Flavor("huge", 16, 65_536, 160),
)
_SAMPLES = 64
"""Number of different sets of hosts, with members of groups or ignored by requests."""
_NODES = range(NUMA_NODES)


def flavors(shapes: Shapes) -> Iterator[Flavor]:
    """Yield four flavors over and over, or flavors of which thousands in a row all differ."""
    for number in count():
        if shapes == "repeated":
            yield REPEATED[number % len(REPEATED)]
        else:
            yield Flavor(f"f{number}", 1 + number % 4, 1_024 + number % 2_039, 10 + number % 11)


class BenchRequests:
    """Requests of one kind for the hosts of a table.

    ``size``: the number of members of a group or of ignored hosts, at most all hosts but one.
    """

    def __init__(self, kind: RequestKind, table: NodeTable, size: int) -> None:
        self.kind = kind
        rng = np.random.default_rng(SEED)
        self._samples = [
            tuple(table.hosts[index] for index in rng.choice(len(table), size, replace=False).tolist())
            for _ in range(_SAMPLES if kind in ("group", "ignore") else 0)
        ]

    def specs(self, shapes: Shapes) -> Iterator[RequestSpec]:
        """Yield endless requests."""
        for number, flavor in enumerate(flavors(shapes)):
            yield self._spec(number, flavor)

    @property
    def filters(self) -> Sequence[str]:
        """The names of the filters that these requests need beside the default ones."""
        return _FILTERS.get(self.kind, ())

    @property
    def pci(self) -> PciOptions:
        """The aliases of PCI devices that the requests name."""
        return PciOptions(aliases_from([json.dumps(_ALIAS)]))

    @property
    def numa_model(self) -> NumaModel:
        """The model of NUMA nodes that the requests are for."""
        return "trees" if self.kind in ("numa_trees", "splittable", "split") else "objects"

    def weighers(self) -> Sequence[Weigher]:
        """Return the weighers that these requests need beside the default ones."""
        return (Weigher.of(ForeignWeigher()),) if self.kind == "foreign" else ()

    def _spec(self, number: int, flavor: Flavor) -> RequestSpec:
        project = f"project-{number % PROJECTS}" if self.kind == "project" else "project"
        sample = self._samples[number % _SAMPLES] if self._samples else ()
        return RequestSpec(
            project_id=project,
            user_id="user",
            flavor=_ON_CELLS.get(self.kind, _as_it_is)(flavor),
            group=_group(number, sample) if self.kind == "group" else None,
            ignore_hosts=frozenset(sample if self.kind == "ignore" else ()),
        )


def _group(number: int, hosts: tuple[str, ...]) -> ServerGroup:
    """Return a group with a member on each host.

    Each request gets a new group: otherwise the claims of the benchmark would add members to it.
    """
    return ServerGroup(f"group-{number}", "anti-affinity", hosts)


def _on_numa_nodes(flavor: Flavor) -> Flavor:
    """Divide the processors and the memory of a flavor among NUMA nodes, and add a VF to each."""
    vcpus, memory = (math.ceil(amount / NUMA_NODES) for amount in (flavor.vcpus, flavor.memory_mb))
    extra_specs = {"group_policy": "isolate"}
    for node in _NODES:
        extra_specs[f"resources_CPU{node}:VCPU"] = str(vcpus)
        extra_specs[f"resources_CPU{node}:MEMORY_MB"] = str(memory)
        extra_specs[f"resources_NIC{node}:SRIOV_NET_VF"] = "1"
    return msgspec.structs.replace(flavor, extra_specs=extra_specs)


def _pinned(flavor: Flavor) -> Flavor:
    """Dedicate the processors of a flavor; those of a large flavor in two NUMA cells."""
    cells = 2 if flavor.vcpus % 2 == 0 and flavor.memory_mb % 2 == 0 and flavor.vcpus > 2 else 1
    extra_specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": str(cells)}
    return msgspec.structs.replace(flavor, extra_specs=extra_specs)


def _on_two_nodes(flavor: Flavor) -> Flavor:
    """Ask for two NUMA nodes, each with the processors and memory of the flavor."""
    return msgspec.structs.replace(
        flavor,
        vcpus=NUMA_NODES * flavor.vcpus,
        memory_mb=NUMA_NODES * flavor.memory_mb,
        extra_specs={"hw:numa_nodes": str(NUMA_NODES)},
    )


def _larger_than_a_node(flavor: Flavor) -> Flavor:
    return msgspec.structs.replace(flavor, memory_mb=flavor.memory_mb + NODE_MEMORY_MB)


def _as_it_is(flavor: Flavor) -> Flavor:
    return flavor


def _with_device(flavor: Flavor) -> Flavor:
    extra_specs = {**flavor.extra_specs, "pci_passthrough:alias": "gpu:1"}
    return msgspec.structs.replace(flavor, extra_specs=extra_specs)


_FILTERS: Final[Mapping[str, Sequence[str]]] = {
    "project": ("AggregateMultiTenancyIsolation",),
    "numa": ("NUMATopologyFilter",),
    "pci": ("PciPassthroughFilter",),
    "numa_pci": ("PciPassthroughFilter", "NUMATopologyFilter"),
}
_ALIAS: Final = {"name": "gpu", **GPU, "device_type": "type-PCI", "numa_policy": "required"}
_ON_CELLS: Final[Mapping[str, Callable[[Flavor], Flavor]]] = {
    "same_subtree": _on_numa_nodes,
    "numa": _pinned,
    "pci": _with_device,
    "numa_pci": lambda flavor: _with_device(_pinned(flavor)),
    "numa_trees": _on_two_nodes,
    "split": _larger_than_a_node,
}


class ForeignWeigher:
    """A weigher of another package: it does not declare the host data that it reads."""

    name = "bench_foreign"
    multiplier_key = "bench_foreign_weight_multiplier"
    default_multiplier = 0.5

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        """Return a number for each host."""
        number: Float64 = (hosts.index % 7).astype(np.float64)
        return number
