"""Hosts without any of the instances that a hint names."""

from roost.scheduler.hints import HostsOfInstances


class DifferentHostFilter(HostsOfInstances):
    """No instance of the scheduler hint ``different_host`` is on the host, as far as hosts report.

    Source: Nova's filter of this name.
    """

    name = "DifferentHostFilter"
    hint = "different_host"
    allowed = False


PLUGIN = DifferentHostFilter
