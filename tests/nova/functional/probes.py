"""The probes that tests put into filters of nova-scheduler, and what they are told of Roost's.

Tests of NUMA and PCI replace ``host_passes`` of a filter by a mock, and read from it whether placement had
offered hosts, which the filter then judged, and the request spec that it judged them for. Here the mock is
told of each decision for which placement offered candidates; that of PCI not if NUMA has ruled all of them
out before. Its other side, Nova's own filter, is not asked.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from nova.scheduler.filters.numa_topology_filter import NUMATopologyFilter
from nova.scheduler.filters.pci_passthrough_filter import PciPassthroughFilter

HOST_MANAGER = SimpleNamespace(
    filter_cls_map={each.__name__: each for each in (NUMATopologyFilter, PciPassthroughFilter)}
)
"""The attribute of a scheduler manager by which tests find the classes of its filters."""


def tell(spec: Any, refusal: str) -> None:
    """Tell the probes that hosts were judged for a request spec. ``refusal``: its text, if none was left."""
    _note(NUMATopologyFilter.host_passes, spec)
    if "NUMA cells" not in refusal:
        _note(PciPassthroughFilter.host_passes, spec)


def _note(probe: Any, spec: Any) -> None:
    if isinstance(probe, Mock):
        asks, probe.side_effect = probe.side_effect, None
        probe(None, spec)
        probe.side_effect = asks
