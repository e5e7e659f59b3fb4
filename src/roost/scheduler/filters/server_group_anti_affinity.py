"""Hosts that do not have as many members of the server group as allowed already."""

from collections.abc import Hashable

from roost.model.allocation import ANTI_AFFINITY
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.plugins import Lack, Named
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class ServerGroupAntiAffinityFilter:
    """Fewer than ``max_server_per_host`` members, those placed earlier in this run counted.

    A host that the instance is on already passes. The claim has the same condition, so that the filter only
    saves claims that would be refused.
    Source: Nova's ``ServerGroupAntiAffinityFilter``.
    """

    name = "ServerGroupAntiAffinityFilter"
    depends_on_claims = True
    names_by_own_members = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        group = request.spec.group
        return group.uuid if group is not None and group.policy == ANTI_AFFINITY else None

    def named(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Named | None:
        group = request.spec.group
        if group is None:
            return None
        most, present = group.max_server_per_host, progress.present
        full = [index for index, n in progress.members.items() if n >= most and index not in present]
        return Named([index for index in full if index >= 0], allowed=False)

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack | None:
        group = request.spec.group
        if group is None:
            return None
        members, most = progress.members[host.index.item(0)], group.max_server_per_host
        return Lack(f"has {members} members of the server group, and {most} may be there")


PLUGIN = ServerGroupAntiAffinityFilter
