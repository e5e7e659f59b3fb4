"""Hosts in the availability zone asked for."""

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.question import Progress, Question


class AvailabilityZone:
    """The zone is the metadata ``availability_zone`` of an aggregate of the host; a host that has none is
    in the default zone."""

    name = "availability_zone"
    depends_on_claims = False

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools:
        zone = question.spec.availability_zone
        if zone is None:
            return np.ones(len(hosts), dtype=np.bool_)
        zones = hosts.table.metadata("availability_zone")
        default = (question.options.default_availability_zone,)
        return np.array([zone in zones.get(index, default) for index in hosts.index.tolist()], dtype=np.bool_)


PLUGIN = AvailabilityZone
