"""Hosts with a newer hypervisor are better."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class HypervisorVersionWeigher:
    """The hypervisor's version, 0 where it is not reported. Source: Nova's weigher of this name."""

    name = "HypervisorVersionWeigher"
    multiplier_key = "hypervisor_version_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.REPORT

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if not hosts.table.has("hypervisor_version"):
            return None
        return hosts.table.hypervisor_version[hosts.index].astype("float64")


PLUGIN = HypervisorVersionWeigher
