"""More members of the server group are better, for the policy soft-affinity."""

from roost.model.allocation import SOFT_AFFINITY
from roost.scheduler.plugins.base_classes import SoftGroupWeigher


class ServerGroupSoftAffinityWeigher(SoftGroupWeigher):
    """The number of members on the host, those placed earlier in this run counted.

    Source: Nova's ``ServerGroupSoftAffinityWeigher``.
    """

    name = "ServerGroupSoftAffinityWeigher"
    multiplier_key = "soft_affinity_weight_multiplier"
    policy = SOFT_AFFINITY
    sign = 1


PLUGIN = ServerGroupSoftAffinityWeigher
