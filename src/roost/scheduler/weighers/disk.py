"""More free disk is better (a negative multiplier packs hosts instead of spreading over them)."""

from roost.fleet.columns import Float64
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class DiskWeigher:
    """Free DISK_GB over the host's whole tree."""

    name = "DiskWeigher"
    multiplier_key = "disk_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.TREE
    free_of = "DISK_GB"
    minval = 0.0

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64 | None:
        return hosts.free(self.free_of)


PLUGIN = DiskWeigher
