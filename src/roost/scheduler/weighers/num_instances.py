"""Weighs hosts by their number of instances; the default multiplier 0 ignores it."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class NumInstancesWeigher:
    """The number of instances. A negative multiplier prefers hosts with few. Source: Nova's weigher of this
    name."""

    name = "NumInstancesWeigher"
    multiplier_key = "num_instances_weight_multiplier"
    default_multiplier = 0.0
    looks_at = Looks.REPORT

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if not hosts.table.has("num_instances"):
            return None
        return hosts.table.num_instances[hosts.index].astype("float64")


PLUGIN = NumInstancesWeigher
