"""Filters that limit a number of each host, by an option or by aggregate metadata of the same name."""

from typing import ClassVar

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import least_integer
from roost.scheduler.plugins.plugins import Lack
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
