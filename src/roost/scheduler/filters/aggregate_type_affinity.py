"""Hosts whose aggregates allow the flavor."""

from collections.abc import Hashable

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import words
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class AggregateTypeAffinityFilter:
    """The flavor's name is in the metadata ``instance_type`` of one of the host's aggregates, where names are
    separated by commas, or no aggregate of the host has that key. Source: Nova's filter of this name."""

    name = "AggregateTypeAffinityFilter"
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.flavor.name

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        flavors = hosts.table.metadata("instance_type")
        if flavors is None:
            return None
        name = request.spec.flavor.name
        return flavors.judged(lambda values: not values or name in words(values), hosts.index) > 0


PLUGIN = AggregateTypeAffinityFilter
