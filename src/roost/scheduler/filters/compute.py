"""Hosts whose service is enabled and has sent a heartbeat lately."""

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class ComputeFilter:
    """Enabled, and seen within ``service_down_time`` seconds."""

    name = "ComputeFilter"
    looks_at = Looks.REPORT

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        table = hosts.table
        up: Bools = table.enabled[hosts.index] & table.seen_since(question.oldest_heartbeat)[hosts.index]
        return up


PLUGIN = ComputeFilter
