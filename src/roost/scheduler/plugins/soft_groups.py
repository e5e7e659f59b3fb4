"""Weighers of the members of a server group with a soft policy."""

from collections.abc import Hashable
from typing import ClassVar

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class SoftGroupWeigher:
    """Weighs a host by ``sign`` times its members of the server group, those placed by this run included.

    It applies to requests whose group has ``policy``.
    """

    default_multiplier = 1.0
    least_multiplier = 0.0
    looks_at = Looks.MEMBERS
    policy: ClassVar[str]
    sign: ClassVar[int]

    def key(self, request: SchedulingRequest) -> Hashable | None:
        group = request.spec.group
        return group.uuid if group is not None and group.policy == self.policy else None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return self.sign * progress.members_on(hosts.index)
