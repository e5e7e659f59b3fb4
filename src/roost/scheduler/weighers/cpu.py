"""More free processors is better (a negative multiplier packs hosts instead of spreading over them)."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class CPUWeigher:
    """Free VCPU over the host's whole tree."""

    name = "CPUWeigher"
    multiplier_key = "cpu_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.TREE
    free_of = "VCPU"
    minval = 0.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return hosts.free(self.free_of)


PLUGIN = CPUWeigher
