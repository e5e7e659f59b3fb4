"""More members of the server group are better, for the policy soft-affinity."""

from collections.abc import Hashable

from roost.fleet.columns import Float64
from roost.model.allocation import SOFT_AFFINITY
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class ServerGroupSoftAffinityWeigher:
    """The number of members on the host, those placed earlier in this run counted.

    Source: Nova's ``ServerGroupSoftAffinityWeigher``.
    """

    name = "ServerGroupSoftAffinityWeigher"
    multiplier_key = "soft_affinity_weight_multiplier"
    default_multiplier = 1.0
    least_multiplier = 0.0
    looks_at = Looks.MEMBERS

    def key(self, question: Question) -> Hashable | None:
        group = question.spec.group
        return group.uuid if group is not None and group.policy == SOFT_AFFINITY else None

    def raw(self, hosts: HostView, question: Question, progress: Progress) -> Float64 | None:
        return progress.members_on(hosts.index)


PLUGIN = ServerGroupSoftAffinityWeigher
