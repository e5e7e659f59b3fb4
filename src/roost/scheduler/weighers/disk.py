"""More free disk is better (a negative multiplier packs hosts instead of spreading over them)."""

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MIB_OF_GIB = 1024


class DiskWeigher:
    """The free disk that the node reports; of a node that reports none, free DISK_GB over its tree.

    Source: Nova's weigher of this name.
    """

    name = "DiskWeigher"
    multiplier_key = "disk_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.REPORT | Looks.TREE
    free_of = "DISK_GB"
    reported = "free_disk_mb"
    minval = 0.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        free = hosts.free(self.free_of)
        if not hosts.table.has(self.reported):
            return free
        reported: Float64 = hosts.table.free_disk_mb[hosts.index] / MIB_OF_GIB
        return np.where(np.isnan(reported), free, reported)


PLUGIN = DiskWeigher
