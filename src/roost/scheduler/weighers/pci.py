"""Hosts with few free PCI devices are better, so that those with many are left to who needs them."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST = 100
"""More free devices than one less than this make no difference."""


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
