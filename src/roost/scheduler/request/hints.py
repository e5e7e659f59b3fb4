"""Scheduler hints that filters read."""

from collections.abc import Hashable
from typing import ClassVar

from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.plugins import Named
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


def hint(request: SchedulingRequest, name: str) -> str | None:
    """Return the value of a hint that has one value; None if it is missing.

    Raises:
        BadRequestSpec: it has several values.
    """
    values = request.spec.scheduler_hints.get(name, ())
    if len(values) > 1:
        raise BadRequestSpec(f"scheduler hint {name!r} has {len(values)} values, and one is allowed")
    return values[0] if values else None


def hint_values(request: SchedulingRequest, name: str) -> tuple[str, ...]:
    """Return all values of a hint; none if it is missing or has a single empty value."""
    values = request.spec.scheduler_hints.get(name, ())
    return () if values == ("",) else values


class HostsOfInstances:
    """A filter by the hosts of the instances that a hint names, as far as hosts report these instances.

    ``hint``: its name. ``allowed``: True if only these hosts may be used, False if all others may.
    """

    hint: ClassVar[str]
    allowed: ClassVar[bool]

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return hint_values(request, self.hint) or None

    def named(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Named | None:
        instances = hint_values(request, self.hint)
        there = [index for each in instances for index in hosts.table.indexes_of_instance(each)]
        return Named(there, self.allowed) if instances else None
