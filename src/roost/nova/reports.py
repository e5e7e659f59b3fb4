"""The report of a node, made of the row of ``compute_nodes`` as its compute wrote it.

Source: ``HostState._update_from_compute_node`` of Nova's ``scheduler/host_manager.py``, and
``ComputeNode._from_db_object``.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog

from roost.model.node import MEBIBYTES, NodeReport, SupportedInstance
from roost.nova.database.compute_nodes import NodeRow

_log = structlog.get_logger()

_IN_HUNDREDTHS: Final = frozenset(
    (
        "cpu.user.percent",
        "cpu.kernel.percent",
        "cpu.idle.percent",
        "cpu.iowait.percent",
        "cpu.percent",
    )
)
"""Metrics that Nova's scheduler sees times a hundred. Source: ``MonitorMetricList.from_json``."""


def report_of(row: NodeRow, cell: str, version: int = 0) -> NodeReport:
    """Return the report of a node without its instances, down. ``version``: of its compute service.

    The usages that placement has too are those of the row. JSON that cannot be read is left out, and logged.
    """
    stats = _stats(row)
    free_gb = row.free_disk_gb
    if row.disk_available_least is not None:
        free_gb = min(free_gb, row.disk_available_least)
    return NodeReport(
        node=row.uuid,
        host=row.host,
        cell=cell,
        last_seen=-math.inf,
        nodename=row.hypervisor_hostname or row.host,
        service_version=version,
        hypervisor_type=row.hypervisor_type or "",
        hypervisor_version=row.hypervisor_version or 0,
        supported_instances=_supported(row),
        host_ip=None if row.host_ip is None else str(row.host_ip),
        cpu_info=_object(row, "cpu_info"),
        stats=stats,
        num_instances=_number(stats, "num_instances"),
        num_io_ops=_number(stats, "io_workload"),
        failed_builds=_number(stats, "failed_builds"),
        metrics=_metrics(row),
        vcpus=row.vcpus,
        vcpus_used=row.vcpus_used,
        memory_mb=row.memory_mb,
        free_ram_mb=row.free_ram_mb,
        disk_gb=row.local_gb,
        free_disk_mb=free_gb * MEBIBYTES,
        cpu_allocation_ratio=row.cpu_allocation_ratio or None,
        ram_allocation_ratio=row.ram_allocation_ratio or None,
        disk_allocation_ratio=row.disk_allocation_ratio or None,
        numa_topology=_object(row, "numa_topology") or None,
        pci_device_pools=_pools(row),
    )


def _read(row: NodeRow, column: str) -> Any:
    """Return the JSON of a column; None if there is none that can be read."""
    text = getattr(row, column)
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        _unreadable(row, column, error)
        return None


def _unreadable(row: NodeRow, column: str, error: object) -> None:
    _log.warning(
        "a column of a compute node cannot be read: it is left out",
        host=row.host,
        nodename=row.hypervisor_hostname,
        column=column,
        error=str(error),
    )


def _object(row: NodeRow, column: str) -> dict[str, Any]:
    found = _read(row, column)
    return found if isinstance(found, dict) else {}


def _stats(row: NodeRow) -> dict[str, str]:
    """Return the stats as texts. Nova's are numbers, texts and null."""
    return {name: "" if value is None else str(value) for name, value in _object(row, "stats").items()}


def _number(stats: Mapping[str, str], name: str) -> int:
    try:
        return int(stats.get(name) or 0)
    except ValueError:
        return 0


def _supported(row: NodeRow) -> tuple[SupportedInstance, ...]:
    found = _read(row, "supported_instances")
    try:
        return msgspec.convert(found or (), tuple[SupportedInstance, ...])
    except msgspec.ValidationError as error:
        _unreadable(row, "supported_instances", error)
        return ()


def _metrics(row: NodeRow) -> dict[str, float]:
    """Return the metrics that have one value, in whole numbers as Nova's scheduler sees them.

    Those of the memory's bandwidth have a value by NUMA cell.
    """
    found = _read(row, "metrics")
    return {
        each["name"]: float(int(each["value"] * (100 if each["name"] in _IN_HUNDREDTHS else 1)))
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and isinstance(each.get("value"), int | float)
    }


def _pools(row: NodeRow) -> tuple[dict[str, Any], ...]:
    """Return the PCI pools: a serialised list of Nova, or plain objects as they were before it."""
    found = _read(row, "pci_stats")
    if isinstance(found, dict):
        members = found.get("nova_object.data")
        found = members.get("objects") if isinstance(members, dict) else [found] if found else []
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
