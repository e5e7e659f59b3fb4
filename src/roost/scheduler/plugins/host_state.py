"""A node as Nova's filters and weighers see it: the attributes of Nova's ``HostState``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from roost.model.node import NodeReport
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable


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
