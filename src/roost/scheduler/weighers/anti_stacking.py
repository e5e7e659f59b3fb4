"""Hosts with fewer instances of the same project are better."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class AntiStackingWeigher:
    """The negated number of instances of the request's project that a host reports: no project has most of
    its instances on one host. A negative multiplier stacks them instead."""

    name = "AntiStackingWeigher"
    multiplier_key = "anti_stacking_weight_multiplier"
    default_multiplier = 1.0
    beyond_nova = True
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.project_id

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        project, table = request.spec.project_id, hosts.table
        return np.array(
            [
                -float(sum(each.project_id == project for each in table.report(index).instances.values()))
                for index in hosts.index.tolist()
            ]
        )


PLUGIN = AntiStackingWeigher
