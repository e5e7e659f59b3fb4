"""Hosts that do not have as many members of the server group as allowed already."""

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Scope
from roost.scheduler.question import Progress, Question


class ServerGroupAntiAffinityFilter:
    """Fewer than ``max_server_per_host`` members, those placed earlier in this run counted."""

    name = "ServerGroupAntiAffinityFilter"
    depends_on_claims = True
    scope = Scope.GROUP

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        group = question.spec.group
        if group is None or group.policy != "anti-affinity":
            return None
        full = [index for index, n in progress.members.items() if n >= group.max_server_per_host]
        return ~np.isin(hosts.index, full)


PLUGIN = ServerGroupAntiAffinityFilter
