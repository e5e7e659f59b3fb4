"""More free memory is better (a negative multiplier packs hosts instead of spreading over them)."""

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class RAMWeigher:
    """The free memory that the node reports, which is that of the machine without
    an allocation ratio; of a node that reports none, free MEMORY_MB over its tree, with the ratio.

    Source: Nova's weigher of this name.
    """

    name = "RAMWeigher"
    multiplier_key = "ram_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.REPORT | Looks.TREE
    free_of = "MEMORY_MB"
    reported = "free_ram_mb"
    minval = 0.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        free = hosts.free(self.free_of)
        if not hosts.table.has(self.reported):
            return free
        reported: Float64 = hosts.table.free_ram_mb[hosts.index]
        return np.where(np.isnan(reported), free, reported)


PLUGIN = RAMWeigher
