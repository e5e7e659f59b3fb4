"""The objects that the handlers of the scheduler's operations use."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property

from roost.ledger import Ledger
from roost.placement.interface import Placement
from roost.placement.queries import QueryBudget
from roost.records import RecordQueue
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.api.host_judge import HostJudge
from roost.scheduler.api.repeated import Repeats
from roost.scheduler.nodes.host_layout import HostLayouts


async def _as_it_is() -> None:
    """Do nothing: the owner of the node table keeps it up to date."""


@dataclass(frozen=True)
class SchedulerService:
    """The objects that the handlers use.

    - ``scheduler``: it has the node table.
    - ``records``: the queue of records; its ``backend`` reads them.
    - ``options``: the options that the scheduler was made with.
    - ``ledger``: the ledger of this process; None if placement is reached over HTTP.
    - ``refresh``: brings the node table up to date before a decision.
    - ``clock``: seconds since the epoch.
    - ``repeats``: the runs that callers have named.
    - ``placement``: reads consumers and their holdings; None: they are not read.
    - ``judge``: has a verdict on each host without a claim; None: nobody asks for an order of hosts.
    - ``queries``: computes lists of hosts and maps on the ledger, in turn with other queries; None: there is
      no ledger.
    """

    scheduler: Scheduler
    records: RecordQueue
    options: SchedulerOptions
    ledger: Ledger | None = None
    refresh: Callable[[], Awaitable[None]] = _as_it_is
    clock: Callable[[], float] = time.time
    repeats: Repeats = field(default_factory=Repeats)
    placement: Placement | None = None
    judge: HostJudge | None = None
    queries: QueryBudget | None = None

    @cached_property
    def layouts(self) -> HostLayouts:
        """The hosts in the order of lists and maps."""
        return HostLayouts(self.scheduler.table, self.options.default_availability_zone)
