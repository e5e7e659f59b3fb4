"""Reports of agents and drivers, cleaned before they reach the cell's database.

Texts are cleaned and cut. Names identify hosts and instances and are not changed: a report with a name that
cannot be stored is dropped, with a warning.
"""

from collections.abc import Iterable
from typing import cast

import msgspec
import structlog

from roost.model.instance import BuildResult
from roost.model.node import NodeInstance, NodeReport, SupportedInstance
from roost.model.text import clean_text, clean_values, is_storable
from roost.model.vocabulary import MAX_INT

MAX_METRICS = 1_000
"""Metrics of one host at most; of more, those with the first names are kept."""
MAX_HOST = 255
MAX_UUID = 36

_log = structlog.get_logger()


def clean_results(results: Iterable[BuildResult]) -> list[BuildResult]:
    """Return the results of builds, their reasons cleaned, without results whose names cannot be stored."""
    kept = []
    for result in results:
        if is_storable(result.instance, MAX_UUID) and is_storable(result.host, MAX_HOST):
            failure = None if result.failure is None else clean_text(result.failure)
            kept.append(msgspec.structs.replace(result, failure=failure))
        else:
            _log.warning("the result of a build was dropped: bad name", result=repr(result)[:500])
    return kept


def clean_reports(reports: Iterable[NodeReport]) -> list[NodeReport]:
    """Return reports of nodes, texts and numbers cleaned, without reports whose names cannot be stored."""
    kept = []
    for report in reports:
        named = (
            is_storable(report.host, MAX_HOST)
            and is_storable(report.nodename or report.host, MAX_HOST)
            and is_storable(report.node, MAX_UUID)
        )
        if named:
            kept.append(clean_report(report))
        else:
            _log.warning("the report of a node was dropped: bad name", report=repr(report)[:500])
    return kept


def clean_metrics(metrics: dict[str, object]) -> dict[str, float]:
    """Return the metrics that are finite numbers."""
    numbers = {
        clean_text(name, MAX_HOST): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and abs(value) <= MAX_FLOAT
    }
    if len(numbers) > MAX_METRICS:
        numbers = {name: numbers[name] for name in sorted(numbers)[:MAX_METRICS]}
    return numbers


MAX_FLOAT = 1.7e308
"""The largest value of a metric. The comparison with it also drops NaN and infinity."""


def clean_report(report: NodeReport) -> NodeReport:
    """Return the report with its texts and numbers cleaned."""
    ratios = (report.cpu_allocation_ratio, report.ram_allocation_ratio, report.disk_allocation_ratio)
    cpu, ram, disk = (None if each is None or not 0 < each <= MAX_FLOAT else each for each in ratios)
    return msgspec.structs.replace(
        report,
        enabled=bool(report.enabled),
        service_version=_count(report.service_version),
        hypervisor_type=clean_text(report.hypervisor_type, MAX_HOST),
        hypervisor_version=_count(report.hypervisor_version),
        supported_instances=tuple(
            SupportedInstance(
                *(clean_text(text, MAX_HOST) for text in (each.arch, each.hv_type, each.vm_mode))
            )
            for each in report.supported_instances
        ),
        host_ip=None if report.host_ip is None else clean_text(report.host_ip, MAX_HOST),
        refused=None if report.refused is None else clean_text(report.refused),
        cpu_info=_plain(report.cpu_info) if report.cpu_info else {},
        stats={clean_text(key): clean_text(value) for key, value in report.stats.items()},
        instances={
            uuid: NodeInstance(
                clean_text(each.project_id, MAX_HOST),
                clean_text(each.flavor, MAX_HOST),
                None if each.image is None else clean_text(each.image, MAX_HOST),
            )
            for uuid, each in report.instances.items()
            if is_storable(uuid, MAX_UUID)
        },
        num_instances=_count(report.num_instances),
        num_io_ops=_count(report.num_io_ops),
        failed_builds=_count(report.failed_builds),
        images=frozenset(image for image in report.images if is_storable(image, MAX_HOST)),
        metrics=clean_metrics({**report.metrics}),
        vcpus=_amount(report.vcpus),
        vcpus_used=_amount(report.vcpus_used),
        memory_mb=_amount(report.memory_mb),
        free_ram_mb=_amount(report.free_ram_mb),
        disk_gb=_amount(report.disk_gb),
        reserved_vcpus=_count(report.reserved_vcpus),
        reserved_memory_mb=_count(report.reserved_memory_mb),
        reserved_disk_gb=_count(report.reserved_disk_gb),
        free_disk_mb=_amount(report.free_disk_mb),
        cpu_allocation_ratio=cpu,
        ram_allocation_ratio=ram,
        disk_allocation_ratio=disk,
        numa_topology=None if report.numa_topology is None else _plain(report.numa_topology),
        pci_device_pools=tuple(_plain(each) for each in report.pci_device_pools),
    )


def _count(number: int) -> int:
    return min(max(number, 0), MAX_INT)


def _amount(number: int | None) -> int | None:
    """Return an amount as a column holds it; it is negative if more is in use than there is."""
    return None if number is None else min(max(number, -MAX_AMOUNT), MAX_AMOUNT)


MAX_AMOUNT = 2**53
"""Largest amount; each integer up to it is a float64 as well."""


def _plain(values: dict[str, object]) -> dict[str, object]:
    """Return data as they were reported, without texts that cannot be stored."""
    return cast(dict[str, object], clean_values(values))
