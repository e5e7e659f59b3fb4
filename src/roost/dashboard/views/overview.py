"""The overview: what needs attention, capacity and use."""

import msgspec

from roost.dashboard.service import DashboardService
from roost.fleet.utilisation import class_uses
from roost.web.request import Request


class ClassCapacity(msgspec.Struct, frozen=True):
    """Capacity and use of a resource class, in units of the class."""

    resource_class: str
    used: int
    capacity: int
    providers: int


class OverviewView(msgspec.Struct, frozen=True, kw_only=True):
    """The overview. ``version``: the commit that it shows, None without a ledger."""

    at: float
    version: int | None
    hosts: int
    classes: tuple[ClassCapacity, ...]


async def overview_view(service: DashboardService, req: Request) -> OverviewView:
    """Return the overview as it is now."""
    classes: tuple[ClassCapacity, ...] = ()
    version = None
    if service.ledger is not None:
        fleet = await service.ledger.current()
        version = fleet.version
        classes = tuple(
            ClassCapacity(each.resource_class, each.used, each.capacity, each.providers)
            for each in class_uses(fleet)
        )
    return OverviewView(at=service.clock(), version=version, hosts=len(service.table), classes=classes)
