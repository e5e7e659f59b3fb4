"""A maintenance: how far it is, and its hosts."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roost.conductor.maintenance.types import MaintainedHostPage, MaintainedHostsQuery, ShownMaintenance
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.model.maintenance import HostState
from roost.web.request import Request

ON_A_PAGE: Final = 100
"""Hosts on a page."""


class MaintenanceQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the page. ``state``: of the hosts. ``marker``: the page of them begins after this host."""

    state: HostState | None = None
    marker: Annotated[str, Meta(max_length=255)] | None = None


class MaintenanceView(msgspec.Struct, frozen=True, kw_only=True):
    """A maintenance with a page of its hosts. ``at``: seconds since the epoch.

    ``nodes``: the root provider of each host that is known here. ``state`` and ``marker`` are of the query.
    """

    at: float
    maintenance: ShownMaintenance
    hosts: MaintainedHostPage
    nodes: dict[str, str]
    state: HostState | None = None
    marker: str | None = None


@of_cloud
async def maintenance_view(
    service: DashboardService, cloud: CloudReads, req: Request, uuid: str
) -> MaintenanceView:
    """Return a maintenance. Raises `NotFound`."""
    query: MaintenanceQuery = req.query
    wanted = MaintainedHostsQuery(state=query.state, limit=ON_A_PAGE, marker=query.marker)
    maintenance = await cloud.maintenances.show(uuid)
    hosts = await cloud.maintenances.hosts(uuid, wanted)
    return MaintenanceView(
        at=service.clock(),
        maintenance=maintenance,
        hosts=hosts,
        nodes=service.nodes_of_hosts(each.host for each in hosts.hosts),
        state=query.state,
        marker=query.marker,
    )
