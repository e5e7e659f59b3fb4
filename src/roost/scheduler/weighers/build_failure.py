"""Prefers hosts whose last builds did not fail."""

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class BuildFailureWeigher:
    """The number of builds that failed since the last success. The negated multiplier outweighs all others.

    Source: Nova's ``BuildFailureWeigher``.
    """

    name = "BuildFailureWeigher"
    multiplier_key = "build_failure_weight_multiplier"
    default_multiplier = 1_000_000.0
    negated = True
    looks_at = Looks.REPORT

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        table = hosts.table
        return table.failed_builds[hosts.index] if table.has("failed_builds") else None


PLUGIN = BuildFailureWeigher
