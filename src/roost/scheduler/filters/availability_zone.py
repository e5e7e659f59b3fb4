"""Hosts in the availability zone asked for."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Bools
from roost.fleet.constraint import MEMBER_OF, Constraint
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Lack
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class AvailabilityZoneFilter:
    """The zone is the metadata ``availability_zone`` of an aggregate of the host; a host that has none is
    in the default zone."""

    name = "AvailabilityZoneFilter"
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.availability_zone

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        zone = request.spec.availability_zone
        if zone is None:
            return None
        is_default = zone == request.options.default_availability_zone
        zones = hosts.table.metadata("availability_zone")
        if zones is None:
            return np.full(len(hosts), is_default)
        return zones.judged(lambda values: zone in values if values else is_default, hosts.index) > 0

    def same_cause(self, constraint: Constraint, hosts: HostView, request: SchedulingRequest) -> Bools | None:
        """Return all hosts if the constraint asks for the aggregates of the zone, else None."""
        zone = request.spec.availability_zone
        if constraint.kind != MEMBER_OF or zone is None:
            return None
        of_zone = hosts.table.aggregates_with(AVAILABILITY_ZONE, zone)
        return np.ones(len(hosts), dtype=np.bool_) if frozenset(constraint.names) == of_zone else None

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack:
        zones = host.table.metadata("availability_zone")
        values = () if zones is None else zones.of(host.index.item(0))
        return Lack(f"is in the zone {', '.join(values) or request.options.default_availability_zone}")


PLUGIN = AvailabilityZoneFilter
