"""Base classes of built-in filters and weighers, and the hints that such filters read."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import least_integer
from roost.scheduler.plugins.plugins import Lack, Named
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class HostLimit:
    """Passes hosts whose number in a column is below a limit, with outstanding claims counted.

    ``column``: of the node table, int64 by index. ``limit``: the name of the option. With ``of_aggregates``,
    aggregate metadata of that name takes precedence over the option: of several aggregates the least number
    counts. The option counts for a host without such metadata, or if one value is no integer.
    """

    looks_at = Looks.REPORT
    depends_on_claims = True
    column: ClassVar[str]
    limit: ClassVar[str]
    of_aggregates: ClassVar[bool] = False

    def __init__(self, options: msgspec.Struct) -> None:
        self._configured: int = getattr(options, self.limit)

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        numbers: Int64 = getattr(hosts.table, self.column)
        below: Bools = numbers[hosts.index] < self._limits(hosts)
        return below

    def lack(self, host: OneHost, request: SchedulingRequest, progress: GroupPlacement) -> Lack:
        number = getattr(host.table, self.column).item(host.index.item(0))
        least = int(np.min(self._limits(host)))
        return Lack(f"has {number} by {self.column}, and {self.limit} is {least}")

    def _limits(self, hosts: HostView) -> Int64 | Float64 | int:
        limits = hosts.table.metadata(self.limit) if self.of_aggregates else None
        if limits is None:
            return self._configured
        return limits.judged(lambda values: least_integer(values, self._configured), hosts.index)


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
