"""Hosts with one of the instances that a hint names."""

from collections.abc import Hashable

from roost.scheduler.hints import hint_values
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Named
from roost.scheduler.question import Progress, Question


class SameHostFilter:
    """An instance of the scheduler hint ``same_host`` is on the host, as far as hosts report.

    Source: Nova's filter of this name.
    """

    name = "SameHostFilter"

    def key(self, question: Question) -> Hashable | None:
        return hint_values(question, "same_host") or None

    def named(self, hosts: HostView, question: Question, progress: Progress) -> Named | None:
        instances = hint_values(question, "same_host")
        there = [index for each in instances for index in hosts.table.indexes_of_instance(each)]
        return Named(there, allowed=True) if instances else None


PLUGIN = SameHostFilter
