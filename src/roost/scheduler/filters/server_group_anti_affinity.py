"""Hosts that do not have as many members of the server group as allowed already."""

from collections.abc import Hashable

from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Named
from roost.scheduler.question import Progress, Question


class ServerGroupAntiAffinityFilter:
    """Fewer than ``max_server_per_host`` members, those placed earlier in this run counted."""

    name = "ServerGroupAntiAffinityFilter"
    depends_on_claims = True

    def key(self, question: Question) -> Hashable | None:
        group = question.spec.group
        return group.uuid if group is not None and group.policy == "anti-affinity" else None

    def named(self, hosts: HostView, question: Question, progress: Progress) -> Named | None:
        group = question.spec.group
        if group is None:
            return None
        most = group.max_server_per_host
        return Named([index for index, n in progress.members.items() if n >= most], allowed=False)


PLUGIN = ServerGroupAntiAffinityFilter
