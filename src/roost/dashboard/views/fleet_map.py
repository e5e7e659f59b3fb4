"""The map of the fleet: what it shows, the denominators of it, and its groups of hosts."""

from typing import Final, Literal

import msgspec
import numpy as np

from roost.dashboard.fleet.criteria import MOST_CHOICES, FilterChoices, HostCriteria, filter_choices
from roost.dashboard.fleet.groups import GroupedBy, GroupSort, HostGroupRow, HostGroups
from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.fleet.levels import MapScale, Shown, scale_of
from roost.dashboard.fleet.map_query import MapQuery
from roost.dashboard.past.hosts_then import hosts_shown
from roost.dashboard.service import DashboardService
from roost.scheduler.nodes.host_states import STATES
from roost.web.request import Request

GROUPS_ON_A_PAGE: Final = 50


class ClassTotals(msgspec.Struct, frozen=True):
    """Amounts of a class on the chosen hosts, in units of the class.

    ``used`` of ``capacity``, which is ``total`` less ``reserved``, times the allocation ratio.
    """

    resource_class: str
    used: int
    capacity: int
    reserved: int
    total: int


class FleetMapView(msgspec.Struct, frozen=True, kw_only=True):
    """The map. ``version``: the commit, None without a ledger.

    ``hosts``: those that the filter chooses, ``all_hosts`` without it; of the chosen ones the number by
    state. ``totals``: None without a ledger. ``groups``: those of the page, ``all_groups`` the number of all.
    ``fullest``: the group with the largest share in use. ``selected``: the position of the
    selected host. ``past``: the moment that was asked for, None for now; ``states`` of then are not kept.
    ``flavors``: those that the filter knows by name. ``misfit``: why the flavor of the filter fits nowhere.
    """

    at: float
    version: int | None
    layout: str
    by: Shown
    resource_class: str
    scale: MapScale
    criteria: HostCriteria
    all_hosts: int
    hosts: int
    states: dict[Literal["up", "disabled", "down"], int]
    totals: ClassTotals | None
    group: GroupedBy
    sort: GroupSort
    page: int
    all_groups: int
    groups: tuple[HostGroupRow, ...]
    fullest: HostGroupRow | None
    choices: FilterChoices
    selected: int | None = None
    past: str | None = None
    flavors: tuple[str, ...] = ()
    misfit: str | None = None


async def fleet_map_view(service: DashboardService, req: Request) -> FleetMapView:
    """Return the map as it is now, or as of a moment."""
    query: MapQuery = req.query
    misfit = await service.hosts.misfit(query.flavor)
    flavors = tuple(await service.hosts.flavors())[:MOST_CHOICES]
    now = await hosts_shown(service, query.at, flavor=query.flavor)
    selection = query.selection
    found = selection.chosen(now, service.hosts)
    name = selection.class_of(now)
    groups = HostGroups(now, name, query.group, found)
    order = groups.order(query.sort)
    hosts = len(now) if found is None else int(found.sum())
    page = min(query.page, max(1, -(-len(groups) // GROUPS_ON_A_PAGE)))
    shown = order[(page - 1) * GROUPS_ON_A_PAGE : page * GROUPS_ON_A_PAGE].tolist()
    counts = np.bincount(now.states if found is None else now.states[found], minlength=len(STATES)).tolist()
    return FleetMapView(
        at=now.at,
        version=now.version,
        layout=now.layout.version,
        by=query.by,
        resource_class=name,
        scale=scale_of(now, query.by, name),
        criteria=query.criteria,
        all_hosts=len(now),
        hosts=hosts,
        states=dict(zip(STATES, counts, strict=True)) if now.states_known else {},
        totals=None if now.fleet is None else _totals(name, groups),
        group=query.group,
        sort=query.sort,
        page=page,
        all_groups=len(groups),
        groups=tuple(map(groups.row, shown)),
        fullest=groups.fullest(),
        choices=filter_choices(now),
        selected=_selected(now, query.host),
        past=query.at,
        flavors=flavors,
        misfit=misfit,
    )


def _selected(now: HostsNow, node: str) -> int | None:
    index = now.table.index_of_node(node) if node else None
    return None if index is None else now.positions.item(index)


def _totals(name: str, groups: HostGroups) -> ClassTotals:
    columns = (groups.used, groups.capacity, groups.reserved, groups.total)
    return ClassTotals(name, *(sum(column.tolist()) for column in columns))
