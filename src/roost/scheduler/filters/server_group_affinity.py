"""Hosts that have a member of the server group, once there is one."""

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Scope
from roost.scheduler.question import Progress, Question


class ServerGroupAffinityFilter:
    """A host of the group's members, those placed earlier in this run counted; any host for the first."""

    name = "ServerGroupAffinityFilter"
    depends_on_claims = True
    scope = Scope.GROUP

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        group = question.spec.group
        # Members on hosts that are unknown here are members too: no other host will do.
        if group is None or group.policy != "affinity" or not (progress.members or group.hosts):
            return None
        return np.isin(hosts.index, list(progress.members))


PLUGIN = ServerGroupAffinityFilter
