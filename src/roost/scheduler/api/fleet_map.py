"""``/v1/scheduler/map``: the level and the state of every host in one character each, by zone and cell."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from roost.fleet import Fleet
from roost.fleet.columns import Int64
from roost.fleet.host_levels import class_levels
from roost.model.vocabulary import MAX_NAME
from roost.placement.queries.budget import unchecked
from roost.scheduler.api.hosts import AmountsUnknown, Count, HostAmounts, Name
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.nodes.host_layout import HostGroup, HostLayout
from roost.scheduler.nodes.host_states import STATES, host_states
from roost.scheduler.nodes.node_amounts import TreeAmounts, node_amounts
from roost.scheduler.nodes.table import NodeTable
from roost.web.errors import Gone
from roost.web.request import Request, Response

MOST_HOSTS: Final = 200_000
"""Hosts of a page at most, two characters each. A larger limit is refused."""

LEAST_STEP: Final = 10
"""Least distance of hosts whose names a page has: a map of all names would be a list."""

LEVEL_CHARACTERS: Final = "0123456789abcdefghijklmnopqrstuv"
"""The characters of the levels 0 to 31."""

NO_LEVEL: Final = "-"
"""The character of a host that does not have the class."""

STATE_CHARACTERS: Final = ".!x"
"""The characters of the states up, disabled and down."""

_LEVEL_BYTES: Final = np.frombuffer((LEVEL_CHARACTERS + NO_LEVEL).encode(), dtype=np.uint8)
_STATE_BYTES: Final = np.frombuffer(STATE_CHARACTERS.encode(), dtype=np.uint8)


MAX_SUM: Final = 2**63 - 1

Bytes = npt.NDArray[np.uint8]


class LayoutChanged(Gone):
    """Hosts have come, gone or moved since the page before: begin without a marker."""

    code: ClassVar[str] = "scheduler.layout_changed"


class FleetMapQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of the map."""

    resource_class: Annotated[Name, Meta(description="The resource class of the levels.")] = "VCPU"
    by: Annotated[
        Literal["used", "free"],
        Meta(
            description="`used`: the share of a host's capacity that is in use; `free`: its free units, as a "
            "share of the most units that a host has free."
        ),
    ] = "used"
    zone: Annotated[Name | None, Meta(description="Only the hosts of an availability zone.")] = None
    cell: Annotated[
        Annotated[str, Meta(max_length=MAX_NAME)] | None,
        Meta(description="Only the hosts of a cell; empty: those without an agent."),
    ] = None
    label: Annotated[
        Name | None,
        Meta(description="A metadata key of host aggregates, such as `rack`, that groups the hosts too."),
    ] = None
    names_every: Annotated[
        Annotated[int, Meta(ge=LEAST_STEP)] | None,
        Meta(description="Show the names of a group's first host, and of hosts this many places apart."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_HOSTS, description="Hosts on a page.")] = MOST_HOSTS
    marker: Annotated[
        Annotated[
            str, Meta(pattern=r"^[0-9a-f]{16}-[0-9]{1,9}$", max_length=32, description="`next` of a page")
        ]
        | None,
        Meta(description="`next` of the page before."),
    ] = None


class MapGroup(msgspec.Struct, forbid_unknown_fields=True):
    """The hosts of one zone and cell, and one value of the label, if the query names one.

    Numbers are those of the whole group: `up`, `disabled` and `down` of `hosts`, and the sums in `amounts`.
    `levels` and `states` have a character for each of its hosts on this page, in order of their names. Levels
    are `0` to `9` and `a` to `v`, the first of nothing and the last of all, `-` for a host without the class.
    States are `.` for up, `!` for disabled, `x` for down. `amounts` and `levels` are null if the scheduler
    reaches placement over HTTP. `names`: those that the query asks for.
    """

    zone: str
    label: str
    cell: str
    hosts: Count
    up: Count
    disabled: Count
    down: Count
    amounts: HostAmounts | None
    levels: str | None
    states: str
    names: list[str] = []


class FleetMap(msgspec.Struct, forbid_unknown_fields=True):
    """The map of a fleet, by page.

    `version`: of the ledger. `layout` changes when a host comes, goes, or changes its place.
    `resource_classes`: those that some provider has. `most`: with `by=free`, the most units that a host has
    free. `hosts`: their number on all pages. `next`: the marker of the next page, null on the last.
    """

    version: int | None
    layout: str
    resource_class: str
    by: Literal["used", "free"]
    resource_classes: list[str]
    most: int | None
    hosts: Count
    groups: list[MapGroup]
    next: str | None


async def show_fleet_map(service: SchedulerService, req: Request, resp: Response) -> msgspec.Raw:
    """Show the level and the state of every host, by zone and cell.

    A page after one whose hosts have come, gone or moved since is a 410: begin anew. A scheduler that reaches
    placement over HTTP has states only.
    """
    query: FleetMapQuery = req.query
    await service.refresh()
    layout = service.layouts.layout(query.label)
    first = 0
    if query.marker is not None:
        version, _, offset = query.marker.partition("-")
        if version != layout.version:
            raise LayoutChanged("Hosts have come, gone or moved since the page before: begin anew.")
        first = int(offset)
    table, oldest = service.scheduler.table, service.clock() - service.options.service_down_time

    def compute(fleet: Fleet | None) -> bytes:
        states = host_states(table, layout.nodes, oldest, fleet)
        return _draw(_Drawing(table, layout, states, first, query), fleet)

    if service.queries is None:
        if query.by == "free":
            raise AmountsUnknown
        return msgspec.Raw(compute(None))
    return msgspec.Raw(await service.queries.answer(("map",), unchecked, compute))


class _Drawing(NamedTuple):
    """The data of a page. ``states``: by place in the layout. ``first``: hosts on earlier pages."""

    table: NodeTable
    layout: HostLayout
    states: Bytes
    first: int
    query: FleetMapQuery


def _draw(drawn: _Drawing, fleet: Fleet | None) -> bytes:
    query, layout = drawn.query, drawn.layout
    groups = [
        each for each in layout.groups if query.zone in (None, each.zone) and query.cell in (None, each.cell)
    ]
    hosts = sum(each.hosts for each in groups)
    end = min(drawn.first + query.limit, hosts)
    amounts = most = shown = None
    if fleet is not None:
        fleet.meter.spend_rows(len(layout.nodes))
        amounts = node_amounts(drawn.table, fleet, query.resource_class, layout.nodes)
        if query.by == "free":
            most = int((amounts.capacity - amounts.used).max(initial=0))
        shown = _level_characters(amounts, most)
    return msgspec.json.encode(
        FleetMap(
            None if fleet is None else fleet.version,
            layout.version,
            query.resource_class,
            query.by,
            [] if fleet is None else sorted(fleet.inventoried_classes()),
            most,
            hosts,
            [*_on_page(drawn, groups, end, amounts, shown)],
            f"{layout.version}-{end}" if end < hosts else None,
        )
    )


def _on_page(
    drawn: _Drawing, groups: list[HostGroup], end: int, amounts: TreeAmounts | None, shown: Bytes | None
) -> Iterator[MapGroup]:
    """Yield the groups with hosts on the page, which ends before the host ``end``."""
    before = 0
    for each in groups:
        begin, until = max(drawn.first - before, 0), min(end - before, each.hosts)
        before += each.hosts
        if begin >= until:
            continue
        whole = slice(each.first, each.first + each.hosts)
        part = slice(each.first + begin, each.first + until)
        up, disabled, down = np.bincount(drawn.states[whole], minlength=len(STATES)).tolist()
        yield MapGroup(
            zone=each.zone,
            label=each.label,
            cell=each.cell,
            hosts=each.hosts,
            up=up,
            disabled=disabled,
            down=down,
            amounts=None if amounts is None else HostAmounts(*(_sum(column[whole]) for column in amounts)),
            levels=None if shown is None else shown[part].tobytes().decode(),
            states=_STATE_BYTES[drawn.states[part]].tobytes().decode(),
            names=_names(drawn, each, begin, until),
        )


def _names(drawn: _Drawing, group: HostGroup, begin: int, until: int) -> list[str]:
    step = drawn.query.names_every
    if step is None:
        return []
    wanted = range(-(-begin // step) * step, until, step)
    nodes, hosts = drawn.layout.nodes, drawn.table.hosts
    return [hosts[nodes.item(group.first + place)] for place in wanted]


def _level_characters(amounts: TreeAmounts, most: int | None) -> Bytes:
    """Return the character of each host's level: uint8[n].

    ``most``: free units of the last level; None: levels are shares in use.
    """
    return _LEVEL_BYTES[class_levels(amounts.capacity, amounts.used, most)]


def _sum(amounts: Int64) -> int:
    """Return the sum of amounts, rounded where int64 could not hold it."""
    if not len(amounts) or int(amounts.max()) < MAX_SUM // len(amounts):
        return int(amounts.sum())
    return min(int(amounts.sum(dtype=np.float64)), MAX_SUM)
