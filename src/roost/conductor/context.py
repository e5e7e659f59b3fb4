"""The contexts of conductors: a process with placement and a scheduler.

The scheduler and placement may be in this process, or clients over HTTP.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from roost.model.spec import Destination, RequestSpec, UnreadKey
from roost.placement.interface import Placement
from roost.process.asyncio_context import AsyncioContext, Transactor
from roost.process.context import Context
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest, Replacement


class CellScheduler(Protocol):
    """A scheduler as a cell's conductor needs it: it claims alternates, and the targets of moves."""

    async def use_alternate(self, request: AlternateRequest) -> Replacement:
        """Claim the next alternate of an instance in place of the host on which its build failed."""

    async def select_destinations(self, request: HostRequest) -> tuple[Destination, ...]:
        """Choose and claim hosts."""


class SchedulerLike(CellScheduler, Protocol):
    """A scheduler as conductors need it, such as `roost.scheduler.Scheduler`."""

    async def check_request(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """Check that a request can be served on some hosts, and return the keys that have no effect."""

    async def plan_maintenance(self, wanted: WantedPlan) -> MaintenancePlan | None:
        """Return the waves in which hosts are emptied; None if they cannot be planned now."""


class PlacementContext(Context, Protocol):
    """A context with placement."""

    @property
    def placement(self) -> Placement:
        """The placement service."""


class CellConductorContext(PlacementContext, Protocol):
    """The context of a cell's conductor."""

    @property
    def scheduler(self) -> CellScheduler:
        """The scheduler, which claims alternates and the targets of moves."""


class SuperConductorContext(PlacementContext, Protocol):
    """The context of a super conductor."""

    @property
    def scheduler(self) -> SchedulerLike:
        """The scheduler."""


S = TypeVar("S", bound=CellScheduler)


class AsyncioConductorContext(AsyncioContext, Generic[S]):
    """The context of a conductor in a process. ``options``: those of `AsyncioContext`."""

    def __init__(
        self, database: Callable[[str], Transactor], placement: Placement, scheduler: S, **options: Any
    ) -> None:
        super().__init__(database, **options)
        self.placement = placement
        self.scheduler = scheduler
