"""Plain filters and weighers: plugins in Nova's manner, which judge one host at a time.

A class with ``host_passes(host_state, spec)`` is a filter, one with ``_weigh_object(host_state, spec)`` a
weigher. Such a class costs a call for each host of each request, so that a class with ``mask`` or ``raw``
is better on a large fleet. It may read anything, so that its results are not cached.

Source: the attributes of Nova's ``HostState``, and the fields of ``nova.objects.RequestSpec``, ``Flavor``,
``ImageMeta`` and ``InstanceGroup`` that plugins of schedulers use.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.model.node import NodeReport
from roost.model.spec import Flavor
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class MonitorMetric(NamedTuple):
    """One metric of a node."""

    name: str
    value: float


class MonitorMetrics:
    """The metrics of a node: each in turn, and ``get`` by name."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[MonitorMetric]:
        return (MonitorMetric(name, value) for name, value in self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def get(self, name: str, default: float | None = None) -> float | None:
        """Return the value of a metric; ``default`` if the node does not report it."""
        return self._values.get(name, default)


_BY_REPORT: Final[Mapping[str, Callable[[NodeReport], Any]]] = {
    "host": lambda report: report.host,
    "nodename": lambda report: report.nodename or report.host,
    "hypervisor_hostname": lambda report: report.nodename or report.host,
    "uuid": lambda report: report.node,
    "cell_uuid": lambda report: report.cell,
    "hypervisor_type": lambda report: report.hypervisor_type or None,
    "hypervisor_version": lambda report: report.hypervisor_version or None,
    "host_ip": lambda report: report.host_ip,
    "cpu_info": lambda report: report.cpu_info or None,
    "supported_instances": lambda report: [
        [each.arch, each.hv_type, each.vm_mode] for each in report.supported_instances
    ],
    "stats": lambda report: report.stats,
    "instances": lambda report: report.instances,
    "failed_builds": lambda report: report.failed_builds,
    "total_usable_ram_mb": lambda report: report.memory_mb,
    "total_usable_disk_gb": lambda report: report.disk_gb,
    "vcpus_total": lambda report: report.vcpus,
    "vcpus_used": lambda report: report.vcpus_used,
    "cpu_allocation_ratio": lambda report: report.cpu_allocation_ratio,
    "ram_allocation_ratio": lambda report: report.ram_allocation_ratio,
    "disk_allocation_ratio": lambda report: report.disk_allocation_ratio,
    "numa_topology": lambda report: report.numa_topology,
    "metrics": lambda report: MonitorMetrics(report.metrics),
}

_AGGREGATES: Final = "aggregates"
"""The attribute with the node's host aggregates, which its report does not have."""

_SERVICE: Final = "service"
"""The attribute with the node's service, which an operator may have disabled."""

_BY_COLUMN: Final = ("num_instances", "num_io_ops")

_BY_TREE: Final = {"free_ram_mb": ("MEMORY_MB", 1), "free_disk_mb": ("DISK_GB", 1024)}
"""Attributes that come from the node's provider tree if the node does not report them: resource class and
factor."""

ATTRIBUTES: Final = frozenset((*_BY_REPORT, _AGGREGATES, _SERVICE, *_BY_COLUMN, *_BY_TREE))
"""The attributes of a `HostState`."""


class HostState:
    """The node at one position of a view, with the attributes in `ATTRIBUTES`.

    An attribute that the node does not report is None, except ``free_ram_mb`` and ``free_disk_mb``: these are
    then the free amounts of the node's tree. Instances and I/O operations include claims since the report.
    """

    def __init__(self, hosts: HostView, position: int) -> None:
        self._hosts = hosts
        self._position = position
        self._index: int = hosts.index.item(position)

    def __getattr__(self, name: str) -> Any:
        table = self._hosts.table
        by_report = _BY_REPORT.get(name)
        if by_report is not None:
            return by_report(table.report(self._index))
        if name == _AGGREGATES:
            return table.aggregates(self._index)
        if name == _SERVICE:
            return reported_service(table, self._index)
        if name in _BY_COLUMN:
            return reported_number(table, self._index, name)
        if name in _BY_TREE:
            return self._free(*_BY_TREE[name], reported_amount(table, self._index, name))
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"HostState(host={self.host!r}, nodename={self.nodename!r})"

    def _free(self, resource_class: str, factor: int, reported: int | None) -> int:
        if reported is not None:
            return reported
        here = self._hosts.some(np.array([self._position], dtype=np.intp))
        return int(here.free(resource_class).item()) * factor


def reported_value(table: NodeTable, index: int, name: str) -> Any:
    """Return an attribute of a node by its report and its claims since; None if it has no such attribute."""
    by_report = _BY_REPORT.get(name)
    if by_report is not None:
        return by_report(table.report(index))
    if name == _AGGREGATES:
        return table.aggregates(index)
    if name == _SERVICE:
        return reported_service(table, index)
    if name in _BY_COLUMN:
        return reported_number(table, index, name)
    if name in _BY_TREE:
        return reported_amount(table, index, name)
    return None


def reported_service(table: NodeTable, index: int) -> dict[str, object]:
    """Return the service of a node, as Nova's host state has it."""
    report = table.report(index)
    return {
        "host": report.host,
        "disabled": not table.enabled.item(index),
        "version": report.service_version,
    }


def reported_amount(table: NodeTable, index: int, name: str) -> int | None:
    """Return a node's amount in a column of the node table, a whole number in MiB; None if not reported."""
    number: float = getattr(table, name).item(index)
    return int(number) if number == number else None


def reported_number(table: NodeTable, index: int, name: str) -> int:
    """Return a node's number in a column of whole numbers of the node table."""
    number: int = getattr(table, name).item(index)
    return number


class PlainGroup(msgspec.Struct, frozen=True):
    """The server group. ``hosts``: names of the hosts with members, those placed by this run included."""

    uuid: str
    policy: str
    hosts: list[str]
    rules: dict[str, int]

    @property
    def policies(self) -> list[str]:
        """The policy, as a list."""
        return [self.policy]


class PlainImage(msgspec.Struct, frozen=True):
    """The image. ``properties`` have current names and spellings: see
    `roost.scheduler.request.image_properties`."""

    id: str | None
    disk_format: str | None
    properties: dict[str, str]


class PlainFlavor:
    """The flavor, with Nova's names for its disks: ``root_gb`` in GiB, ``swap`` in MiB."""

    def __init__(self, flavor: Flavor) -> None:
        self._flavor = flavor
        self.root_gb = flavor.disk_gb
        self.swap = flavor.swap_mb

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flavor, name)


class PlainSpec:
    """The request spec: the attributes of `roost.model.spec.RequestSpec`, and further ones of Nova's.

    ``instance_uuid`` is the first instance of the request.
    """

    def __init__(self, request: SchedulingRequest, table: NodeTable, progress: GroupPlacement) -> None:
        spec = request.spec
        self._spec = spec
        self.num_instances = len(request.instances)
        self.instance_uuid = request.instances[0] if request.instances else None
        self.flavor = PlainFlavor(spec.flavor)
        self.vcpus = spec.flavor.vcpus
        self.memory_mb = spec.flavor.memory_mb
        self.root_gb = spec.flavor.disk_gb
        self.ephemeral_gb = spec.flavor.ephemeral_gb
        self.swap = spec.flavor.swap_mb
        self.is_bfv = spec.volume_backed
        image = spec.image
        self.image = image and PlainImage(image.id, image.disk_format, with_current_names(image.properties))
        group = spec.group
        self.instance_group = group and PlainGroup(
            group.uuid,
            group.policy,
            sorted(table.hosts[index] for index in progress.members if index >= 0),
            {"max_server_per_host": group.max_server_per_host},
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spec, name)

    def get_scheduler_hint(self, name: str, default: Any = None) -> Any:
        """Return the value of a hint, a list if it has several; ``default`` if it is missing."""
        values = self._spec.scheduler_hints.get(name, ())
        return (values[0] if len(values) == 1 else list(values)) if values else default


class PlainFilter:
    """A filter that calls a plain one for each host.

    ``RUN_ON_REBUILD`` and ``run_filter_once_per_request`` of the plain filter have the same meaning as in
    Nova.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.depends_on_claims = not getattr(plain, "run_filter_once_per_request", False)
        self.runs_on_rebuild = bool(getattr(plain, "RUN_ON_REBUILD", False))
        self.reads = getattr(plain, "reads", None)
        self._passes = plain.host_passes

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        spec = PlainSpec(request, hosts.table, progress)
        passing = (bool(self._passes(HostState(hosts, position), spec)) for position in range(len(hosts)))
        return np.fromiter(passing, np.bool_, len(hosts))


class PlainWeigher:
    """A weigher that calls a plain one for each host.

    ``minval`` of the plain weigher has the same meaning as in Nova; numbers above its ``maxval`` are lowered
    to it. Its method ``weight_multiplier`` gives the multiplier of each host. Without that method the
    multiplier is an option, and the weigher may set ``multiplier_key`` and ``default_multiplier``.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.multiplier_key = multiplier_key_of(type(plain))
        self.default_multiplier = float(getattr(plain, "default_multiplier", 1.0))
        self.minval = getattr(plain, "minval", None)
        self.reads = getattr(plain, "reads", None)
        self._weigh = plain._weigh_object
        maxval = getattr(plain, "maxval", None)
        self._most = math.inf if maxval is None else float(maxval)
        if _has_own_multiplier(plain):
            self.multipliers = lambda hosts: _numbers(hosts, plain.weight_multiplier)

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        spec = PlainSpec(request, hosts.table, progress)
        found = _numbers(hosts, lambda host_state: self._weigh(host_state, spec))
        return found if self._most == math.inf else np.minimum(found, self._most)


def _numbers(hosts: HostView, number: Callable[[HostState], Any]) -> Float64:
    found = (float(number(HostState(hosts, position))) for position in range(len(hosts)))
    return np.fromiter(found, np.float64, len(hosts))


def _has_own_multiplier(plain: Any) -> bool:
    """Return whether a weigher defines its own multiplier, not the 1 of Nova's base class."""
    own = getattr(type(plain), "weight_multiplier", None)
    return own is not None and own.__module__ != "nova.weights"


def multiplier_key_of(plain: Any) -> str:
    """Return the multiplier's name of a plain weigher: ``quiet_weight_multiplier`` of ``QuietWeigher``."""
    key = getattr(plain, "multiplier_key", None)
    return (
        key if isinstance(key, str) else f"{plain.__name__.removesuffix('Weigher').lower()}_weight_multiplier"
    )
