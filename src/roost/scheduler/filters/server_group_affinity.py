"""Hosts that have a member of the server group, once there is one."""

from collections.abc import Hashable

from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Named
from roost.scheduler.question import Progress, Question


class ServerGroupAffinityFilter:
    """A host of the group's members, those placed earlier in this run counted; any host for the first."""

    name = "ServerGroupAffinityFilter"
    depends_on_claims = True

    def key(self, question: Question) -> Hashable | None:
        group = question.spec.group
        return group.uuid if group is not None and group.policy == "affinity" else None

    def named(self, hosts: HostView, question: Question, progress: Progress) -> Named | None:
        group = question.spec.group
        # Members on hosts that are unknown here are members too: no other host will do.
        if group is None or not (progress.members or group.hosts):
            return None
        return Named(progress.members.keys(), allowed=True)


PLUGIN = ServerGroupAffinityFilter
