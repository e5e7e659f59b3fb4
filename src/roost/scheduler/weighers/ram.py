"""More free memory is better (a negative multiplier packs hosts instead of spreading over them)."""

from roost.fleet.columns import Float64
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class RAMWeigher:
    """Free MEMORY_MB over the host's whole tree."""

    name = "RAMWeigher"
    multiplier_key = "ram_weight_multiplier"
    default_multiplier = 1.0
    looks_at = Looks.TREE
    free_of = "MEMORY_MB"
    minval = 0.0

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64 | None:
        return hosts.free(self.free_of)


PLUGIN = RAMWeigher
