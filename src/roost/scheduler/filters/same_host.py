"""Hosts with one of the instances that a hint names."""

from roost.scheduler.plugins.base_classes import HostsOfInstances
from roost.scheduler.request.keys.key import Key


class SameHostFilter(HostsOfInstances):
    """An instance of the scheduler hint ``same_host`` is on the host, as far as hosts report.

    Source: Nova's filter of this name.
    """

    name = "SameHostFilter"
    reads = (Key("hint", "same_host"),)
    hint = "same_host"
    allowed = True


PLUGIN = SameHostFilter
