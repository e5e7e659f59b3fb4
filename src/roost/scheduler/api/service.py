"""What the handlers of the scheduler's operations work with."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from roost.ledger import Ledger
from roost.placement.interface import Placement
from roost.records import RecordQueue
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.api.repeated import Repeats


async def _as_it_is() -> None:
    """The node table is kept up to date by its owner."""


@dataclass(frozen=True)
class Service:
    """What the handlers work with.

    - ``scheduler``: it has the node table.
    - ``records``: its queue, whose ``backend`` reads records.
    - ``options``: those that the scheduler was made with.
    - ``ledger``: that of this process; None if placement is reached over HTTP.
    - ``refresh``: brings the node table up to date before a decision.
    - ``clock``: seconds since the epoch.
    - ``repeats``: the runs that callers have named.
    - ``placement``: where consumers and what they hold are read; None: nowhere.
    """

    scheduler: Scheduler
    records: RecordQueue
    options: SchedulerOptions
    ledger: Ledger | None = None
    refresh: Callable[[], Awaitable[None]] = _as_it_is
    clock: Callable[[], float] = time.time
    repeats: Repeats = field(default_factory=Repeats)
    placement: Placement | None = None
