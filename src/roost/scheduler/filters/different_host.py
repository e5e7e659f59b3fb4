"""Hosts without any of the instances that a hint names."""

from roost.scheduler.plugins.base_classes import HostsOfInstances
from roost.scheduler.request.keys.key import Key


class DifferentHostFilter(HostsOfInstances):
    """No instance of the scheduler hint ``different_host`` is on the host, as far as hosts report.

    Source: Nova's filter of this name.
    """

    name = "DifferentHostFilter"
    reads = (Key("hint", "different_host"),)
    hint = "different_host"
    allowed = False


PLUGIN = DifferentHostFilter
