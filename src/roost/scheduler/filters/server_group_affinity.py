"""Hosts that have a member of the server group, once there is one."""

from collections.abc import Hashable

from roost.model.allocation import AFFINITY
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugins import Named
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class ServerGroupAffinityFilter:
    """A host of the group's members, those placed earlier in this run counted; any host for the first.

    The claim has the same condition, so that the filter only saves claims that would be refused.
    Source: Nova's ``ServerGroupAffinityFilter``.
    """

    name = "ServerGroupAffinityFilter"
    depends_on_claims = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        group = request.spec.group
        return group.uuid if group is not None and group.policy == AFFINITY else None

    def named(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Named | None:
        if not progress.members:
            return None
        # Members on hosts that the table lacks count too: then no host of the table is allowed.
        return Named([index for index in progress.members if index >= 0], allowed=True)


PLUGIN = ServerGroupAffinityFilter
