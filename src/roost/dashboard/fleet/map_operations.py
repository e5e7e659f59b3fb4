"""The data of the map: the layout, the bytes of hosts, single hosts, and hosts found by name.

The browser never holds names: it asks for the host at a position of a layout. A layout is identified by its
id; with an old one the answer is 409, and the browser reads the new one.
"""

from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np
from msgspec import Meta

from roost.dashboard import addresses
from roost.dashboard.fleet.criteria import Text
from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.fleet.map_query import MapQuery
from roost.dashboard.html.values import amount, percent
from roost.dashboard.past.hosts_then import hosts_shown
from roost.dashboard.service import FLEET_RULE, DashboardService
from roost.scheduler.nodes.host_states import STATES
from roost.web.errors import Conflict, NotFound
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.query import Query
from roost.web.request import Request, Response

MOST_FOUND: Final = 20
"""Hosts that a search on the map names at most; further ones are counted."""

MOST_FACTS: Final = 6
"""Resource classes whose use is told of a host on the map."""

LayoutId = Annotated[str, Meta(max_length=64)]


class LayoutIsOld(Conflict):
    """Hosts have come, gone or moved: read the layout again."""

    code: ClassVar[str] = "dashboard.layout_is_old"

    def __init__(self, newest: str) -> None:
        super().__init__(f"Hosts have come, gone or moved: the layout is {newest} now.")


class LayoutQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of the layout."""

    layout: LayoutId = ""


class LevelsQuery(MapQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the bytes. ``layout``: that of the reader; empty: any."""

    layout: LayoutId = ""


class MapHostQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of one host, by its position in a layout."""

    layout: LayoutId
    index: Annotated[int, Meta(ge=0, le=10**9)]
    at: Annotated[str, Meta(max_length=40)] | None = None


class MapSearchQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of a search by name."""

    layout: LayoutId
    search: Text = ""


class ShownGroup(msgspec.Struct, frozen=True):
    """A group of the layout: ``count`` hosts after those of the groups before."""

    zone: str
    rack: str
    cell: str
    count: int


class ShownLayout(msgspec.Struct, frozen=True):
    """The layout of the map: ``count`` hosts in groups, in the order of their bytes."""

    layout: str
    count: int
    groups: tuple[ShownGroup, ...]


class MapHost(msgspec.Struct, frozen=True):
    """A host on the map: its name, the address of its page, and facts as pairs of label and value."""

    name: str
    href: str
    facts: tuple[tuple[str, str], ...]


class FoundHosts(msgspec.Struct, frozen=True):
    """Hosts found by name, as pairs of position and name. ``more``: the number of further ones."""

    hosts: tuple[tuple[int, str], ...]
    more: int


async def show_layout(service: DashboardService, req: Request, resp: Response) -> ShownLayout | None:
    """Show the layout of the map."""
    now = await service.hosts.now()
    resp.set_header("cache-control", "private, no-cache")
    if _is_known(req, resp, now.layout.version):
        return None
    groups = tuple(ShownGroup(each.zone, each.label, each.cell, each.hosts) for each in now.layout.groups)
    return ShownLayout(now.layout.version, len(now), groups)


async def show_levels(service: DashboardService, req: Request, resp: Response) -> None:
    """Show the byte of each host, with the commit, the scale and the topic of changes in the head."""
    query: LevelsQuery = req.query
    now = await hosts_shown(service, query.at, flavor=query.flavor)
    _check(now, query.layout or now.layout.version)
    selection = query.selection
    found = service.levels.of(now, selection) if query.at is None else service.levels.made(now, selection)
    resp.set_header("x-roost-commit", found.number)
    if query.at is None:
        resp.set_header("x-roost-topic", selection.topic)
    resp.set_header(
        "x-roost-scale", msgspec.json.encode(found.scale).decode().encode("ascii", "replace").decode()
    )
    if _is_known(req, resp, f"{found.layout}-{found.number}"):
        return
    resp.content_type = "application/octet-stream"
    if "gzip" in (req.get_header("accept-encoding") or ""):
        resp.set_header("content-encoding", "gzip")
        resp.data = found.compressed
    else:
        resp.data = found.levels.tobytes()


async def show_map_host(service: DashboardService, req: Request, resp: Response) -> MapHost:
    """Show the host at a position of a layout."""
    query: MapHostQuery = req.query
    now = await hosts_shown(service, query.at)
    _check(now, query.layout)
    if query.index >= len(now):
        raise NotFound(f"The layout has {len(now)} hosts.")
    return map_host(now, query.index)


async def find_on_map(service: DashboardService, req: Request, resp: Response) -> FoundHosts:
    """Find hosts by a part of their name."""
    query: MapSearchQuery = req.query
    now = await service.hosts.now(searched=True)
    _check(now, query.layout)
    wanted = query.search.strip().lower()
    if not wanted:
        return FoundHosts((), 0)
    names = service.hosts.names(now)
    places = np.flatnonzero(np.fromiter((wanted in each for each in names), dtype=np.bool_, count=len(names)))
    # A host of just this name comes first.
    exact = [place for place in places.tolist() if wanted in names[place].split("\0")]
    ordered = [*exact, *(place for place in places.tolist() if place not in set(exact))][:MOST_FOUND]
    hosts = now.table.hosts
    return FoundHosts(
        tuple((place, hosts[now.layout.nodes.item(place)]) for place in ordered), len(places) - len(ordered)
    )


def map_host(now: HostsNow, position: int) -> MapHost:
    """Return what the map tells of the host at a position."""
    table, index = now.table, now.layout.nodes.item(position)
    group = now.group_at(position)
    node = table.nodes[index]
    facts: list[tuple[str, str]] = []
    if now.states_known:
        facts.append(("State", STATES[now.states.item(position)]))
    facts.append(("Zone", group.zone))
    facts += [(label, value) for label, value in (("Rack", group.label), ("Cell", group.cell)) if value]
    amounts = now.amounts_of(position)
    if amounts is not None:
        facts += [
            (
                name,
                _use(name, each.used, each.capacity),
            )
            for name in [name for name in now.classes if name in amounts][:MOST_FACTS]
            for each in (amounts[name],)
        ]
    elif now.fleet is not None:
        facts.append(("Placement", "has no provider of this host"))
    return MapHost(table.hosts[index], addresses.host(node), tuple(facts))


def _use(name: str, used: int, capacity: int) -> str:
    return f"{amount(name, used)} of {amount(name, capacity)}, {percent(used, capacity)}"


def _check(now: HostsNow, layout: str) -> None:
    if layout != now.layout.version:
        raise LayoutIsOld(now.layout.version)


def _is_known(req: Request, resp: Response, tag: str) -> bool:
    """Set the tag of a response; return whether the client has it already, and then say so."""
    resp.set_header("etag", f'"{tag}"')
    if f'"{tag}"' not in (req.get_header("if-none-match") or ""):
        return False
    resp.status = 304
    return True


_RULE: Final = Rule(FLEET_RULE)

MAP_OPERATIONS: Final = (
    Operation("GET", addresses.MAP_LAYOUT, _RULE, show_layout, query=Query(LayoutQuery)),
    Operation("GET", addresses.MAP_LEVELS, _RULE, show_levels, query=Query(LevelsQuery), provides=()),
    Operation("GET", addresses.MAP_HOST, _RULE, show_map_host, query=Query(MapHostQuery)),
    Operation("GET", addresses.MAP_FIND, _RULE, find_on_map, query=Query(MapSearchQuery)),
)
