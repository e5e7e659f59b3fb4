"""Fewer members of the server group are better, for the policy soft-anti-affinity."""

from roost.model.allocation import SOFT_ANTI_AFFINITY
from roost.scheduler.plugins.base_classes import SoftGroupWeigher


class ServerGroupSoftAntiAffinityWeigher(SoftGroupWeigher):
    """The number of members on the host, negated, those placed earlier in this run counted.

    Source: Nova's ``ServerGroupSoftAntiAffinityWeigher``.
    """

    name = "ServerGroupSoftAntiAffinityWeigher"
    multiplier_key = "soft_anti_affinity_weight_multiplier"
    policy = SOFT_ANTI_AFFINITY
    sign = -1


PLUGIN = ServerGroupSoftAntiAffinityWeigher
