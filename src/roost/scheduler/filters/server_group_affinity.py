"""Hosts that have a member of the server group, once there is one."""

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.question import Progress, Question


class ServerGroupAffinity:
    """A host of the group's members, those placed earlier in this run counted; any host for the first."""

    name = "server_group_affinity"
    depends_on_claims = True

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools:
        group = question.spec.group
        if group is None or group.policy != "affinity" or not progress.members:
            return np.ones(len(hosts), dtype=np.bool_)
        return np.isin(hosts.index, list(progress.members))


PLUGIN = ServerGroupAffinity
