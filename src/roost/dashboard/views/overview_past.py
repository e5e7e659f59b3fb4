"""The overview as of an earlier time: capacity and use, of all hosts and by the places that they have now."""

import msgspec
import numpy as np

from roost.dashboard.past.hosts_then import HostsThen, hosts_shown
from roost.dashboard.past.past_nodes import PastNodes
from roost.dashboard.service import DashboardService
from roost.dashboard.views.overview import (
    ClassCapacity,
    OverviewView,
    PlaceCapacity,
    class_order,
    overview_view,
    places,
)
from roost.scheduler.nodes.host_states import DISABLED, UP
from roost.web.request import Request


async def overview_shown(service: DashboardService, req: Request) -> OverviewView:
    """Return the overview as of the moment that was asked for, or as it is now.

    Raises: `BadRequest`, `PastMissing`.
    """
    at = req.query.at
    return await overview_view(service, req) if at is None else await _overview_at(service, at)


async def _overview_at(service: DashboardService, at: str) -> OverviewView:
    then = await hosts_shown(service, at)
    assert isinstance(then, HostsThen)
    return OverviewView(
        at=then.at,
        version=then.version,
        hosts=int(then.existed.sum()),
        up=int(((then.states == UP) & then.existed).sum()) if then.states_known else None,
        disabled=int(((then.states == DISABLED) & then.existed).sum()) if then.states_known else None,
        instances=None,
        runs=None,
        minutes=0,
        attention=(),
        classes=_capacities(then.columns),
        zones=_places(then, [each.zone for each in then.layout.groups]),
        cells=_places(then, [each.cell for each in then.layout.groups]),
        past=True,
    )


def _capacities(then: PastNodes) -> tuple[ClassCapacity, ...]:
    found = []
    for name in sorted(then.columns.classes, key=class_order):
        columns = then.columns.classes[name]
        providers = int(((columns.total > 0) | (columns.used > 0)).sum())
        # As now, an inventory with a capacity below 0 takes nothing away from others.
        capacity = int(np.maximum(columns.capacity, 0).sum())
        used, reserved, total = (int(each.sum()) for each in (columns.used, columns.reserved, columns.total))
        found.append(ClassCapacity(name, used, capacity, reserved, total, providers))
    return tuple(found)


def _places(then: HostsThen, place_of: list[str]) -> tuple[PlaceCapacity, ...]:
    found = places(then, place_of)
    return found if then.states_known else tuple(msgspec.structs.replace(each, up=None) for each in found)
