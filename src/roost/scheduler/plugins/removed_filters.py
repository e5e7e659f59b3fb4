"""Filters that Nova once had: a configuration that still names them starts, with a warning for each."""

from typing import Final


def _limited(resource_class: str, ratio: str) -> str:
    return (
        f"placement limits {resource_class} by the allocation_ratio of each host's inventory; remove the "
        f"filter from enabled_filters. Where it was not enabled, so that {resource_class} had no limit, "
        f"{ratio} = 10000.0 on the compute hosts stands in"
    )


def _limited_by_aggregate(resource_class: str, ratio: str) -> str:
    return (
        f"{_limited(resource_class, ratio)}. The aggregate metadata {ratio} has no effect: set the ratio on "
        "the compute hosts of the aggregate"
    )


def _exact(resource_class: str) -> str:
    return (
        "remove the filter from enabled_filters. A flavor for whole hosts requests the custom resource class "
        f"of the host and sets resources:{resource_class} to 0"
    )


REMOVED_FILTERS: Final = {
    "CoreFilter": _limited("VCPU", "cpu_allocation_ratio"),
    "RamFilter": _limited("MEMORY_MB", "ram_allocation_ratio"),
    "DiskFilter": _limited("DISK_GB", "disk_allocation_ratio"),
    "AggregateCoreFilter": _limited_by_aggregate("VCPU", "cpu_allocation_ratio"),
    "AggregateRamFilter": _limited_by_aggregate("MEMORY_MB", "ram_allocation_ratio"),
    "AggregateDiskFilter": _limited_by_aggregate("DISK_GB", "disk_allocation_ratio"),
    "ExactCoreFilter": _exact("VCPU"),
    "ExactRamFilter": _exact("MEMORY_MB"),
    "ExactDiskFilter": _exact("DISK_GB"),
    "RetryFilter": "alternates take the place of retries; remove the filter from enabled_filters",
    "TypeAffinityFilter": (
        "remove the filter from enabled_filters. AggregateTypeAffinityFilter limits the flavors of an "
        "aggregate"
    ),
    "TrustedFilter": "remove the filter from enabled_filters. Flavors require a trait of the trusted hosts",
}
"""Name of a removed filter -> what the operator configures instead."""
