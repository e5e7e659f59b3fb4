"""A host as of a moment: its provider tree, and who held it."""

import msgspec

from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.past.past_moments import iso
from roost.dashboard.service import DashboardService
from roost.dashboard.views.host import HostPageQuery, HostPageView, PastOfHost, host_view, names_on
from roost.dashboard.views.host_history import HostHistory
from roost.dashboard.views.host_holders import HOLDERS_ON_A_PAGE, Holders, holder_of
from roost.dashboard.views.host_tree import provider_tree
from roost.web.errors import NotFound
from roost.web.request import Request


async def host_shown(service: DashboardService, req: Request, uuid: str) -> HostPageView:
    """Return a host as of the moment that was asked for, or as it is now.

    Raises: `NotFound`, `BadRequest`, `PastMissing`.
    """
    query: HostPageQuery = req.query
    if query.at is None:
        return await host_view(service, req, uuid)
    return await _host_at(service, await service.hosts.now(), uuid, query.at, query.page)


async def _host_at(service: DashboardService, now: HostsNow, uuid: str, at: str, page: int) -> HostPageView:
    """Return a host as of a moment. ``now``: used before the first ``await``."""
    index = service.table.index_of_node(uuid)
    place = ("", "", "")
    name, position = None, None
    if index is not None:
        position = now.positions.item(index)
        name, group = service.table.hosts[index], now.group_at(position)
        place = (group.zone, group.label, group.cell)
    moment = await service.past.moment(at)
    found = await service.past.host(uuid, moment.version)
    if found is None:
        raise NotFound(f"At {iso(moment.at)} there was no host with the root provider {uuid}.")
    last = max(1, -(-len(found.holders) // HOLDERS_ON_A_PAGE))
    page = min(page, last)
    holders = found.holders[(page - 1) * HOLDERS_ON_A_PAGE : page * HOLDERS_ON_A_PAGE]
    zone, rack, cell = place
    view = HostPageView(
        at=moment.at,
        version=moment.version,
        node=uuid,
        name=name or found.providers[0].name,
        zone=zone,
        rack=rack,
        cell=cell,
        position=position,
        tree=provider_tree(found.fleet(), 0),
        holders=Holders(len(found.holders), page, tuple(holder_of(each) for each in holders)),
        history=HostHistory((), (), None),
        past=PastOfHost(at, found.previous, found.next),
    )
    return msgspec.structs.replace(view, names=await names_on(service.cloud, view))
