"""All hosts."""

from collections.abc import Hashable

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class AllHostsFilter:
    """Lets every host pass. Source: Nova's filter of this name."""

    name = "AllHostsFilter"
    looks_at = Looks.NOTHING

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        return None


PLUGIN = AllHostsFilter
