"""Prefers hosts with few free PCI devices, to keep the others for requests that need devices."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST = 100
"""The number of a host without free PCI devices. Free devices beyond one less than this do not count."""


class PCIWeigher:
    """100 less the number of free PCI devices, of which at most 99 count. Source: Nova's weigher of this
    name."""

    name = "PCIWeigher"
    multiplier_key = "pci_weight_multiplier"
    default_multiplier = 1.0
    least_multiplier = 0.0
    looks_at = Looks.REPORT

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if not hosts.table.has("free_pci_devices"):
            return None
        free: Float64 = hosts.table.free_pci_devices[hosts.index].clip(max=MOST - 1).astype("float64")
        return MOST - free


PLUGIN = PCIWeigher
