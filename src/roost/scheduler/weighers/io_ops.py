"""Hosts with fewer instances that burden the disk are better."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class IoOpsWeigher:
    """The number of instances in a state that burdens the disk. Source: Nova's weigher of this name."""

    name = "IoOpsWeigher"
    multiplier_key = "io_ops_weight_multiplier"
    default_multiplier = -1.0
    looks_at = Looks.REPORT
    minval = 0.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if not hosts.table.has("num_io_ops"):
            return None
        return hosts.table.num_io_ops[hosts.index].astype("float64")


PLUGIN = IoOpsWeigher
