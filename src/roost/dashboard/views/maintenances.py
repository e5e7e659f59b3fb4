"""The list of maintenances, the newest first."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roost.conductor.maintenance.types import MaintenancePage, MaintenancesQuery
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.web.request import Request

ON_A_PAGE: Final = 50
"""Maintenances on a page."""


class MaintenanceListQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the list. ``under_way``: only those that have not ended, or that have. ``marker``: `next`
    of the page before."""

    under_way: bool | None = None
    marker: Annotated[str, Meta(max_length=80)] | None = None


class MaintenancesView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of maintenances. ``at``: seconds since the epoch. The others are of the query."""

    at: float
    page: MaintenancePage
    under_way: bool | None = None
    marker: str | None = None


@of_cloud
async def maintenances_view(service: DashboardService, cloud: CloudReads, req: Request) -> MaintenancesView:
    """Return a page of maintenances."""
    query: MaintenanceListQuery = req.query
    wanted = MaintenancesQuery(under_way=query.under_way, limit=ON_A_PAGE, marker=query.marker)
    page = await cloud.maintenances.page(wanted)
    return MaintenancesView(at=service.clock(), page=page, under_way=query.under_way, marker=query.marker)
