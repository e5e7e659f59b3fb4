"""Hosts whose service is enabled and has sent a heartbeat lately."""

import math

from roost.fleet.columns import Bools
from roost.fleet.constraint import FORBIDDEN, ROOT_FORBIDDEN, Constraint
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Lack
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class ComputeFilter:
    """Enabled, and seen within ``service_down_time`` seconds."""

    name = "ComputeFilter"
    looks_at = Looks.REPORT

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        table = hosts.table
        up: Bools = table.enabled[hosts.index] & table.seen_since(request.oldest_heartbeat)[hosts.index]
        return up

    def same_cause(self, constraint: Constraint, hosts: HostView, request: SchedulingRequest) -> Bools | None:
        """Return the hosts that are alive, if the constraint forbids the trait of disabled hosts.

        The filter excludes such a host only as disabled.
        """
        if constraint.kind not in (FORBIDDEN, ROOT_FORBIDDEN) or constraint.names != (DISABLED_TRAIT,):
            return None
        alive: Bools = hosts.table.seen_since(request.oldest_heartbeat)[hosts.index]
        return alive

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack | None:
        table, index = host.table, host.index.item(0)
        if not table.enabled.item(index):
            return Lack("is disabled")
        seen = table.last_seen.item(table.service.item(index))
        if not math.isfinite(seen):
            return Lack("is down")
        return Lack(f"is down: its last heartbeat was {request.now - seen:.0f} s ago")


PLUGIN = ComputeFilter
