"""``/v1/scheduler/hosts``: the hosts as the scheduler sees them, with what placement has of each.

The service sorts and counts, so that a client that shows twenty of a hundred thousand hosts asks for twenty.
"""

from typing import Annotated, Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Rows, largest
from roost.fleet.host_levels import amounts_of_tree
from roost.fleet.work import SUMMARY
from roost.model.vocabulary import MAX_NAME
from roost.placement.queries.budget import unchecked
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.nodes.host_states import STATES, HostState, States, host_states
from roost.scheduler.nodes.node_amounts import node_amounts
from roost.scheduler.nodes.table import NodeTable
from roost.web.errors import BadRequest
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE
from roost.web.request import Request, Response

_FARTHEST = 100_000_000
_IN_SEARCH: Final = 12
"""Names that are searched in one unit of work."""

Count = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00]*\Z")]


class AmountsUnknown(BadRequest):
    """The scheduler reaches placement over HTTP, so it does not know what all hosts have in use."""

    code = "scheduler.amounts_unknown"

    def __init__(self) -> None:
        super().__init__(
            "This scheduler reaches placement over HTTP: it knows names and states of hosts, not their use. "
            "Ask a scheduler that has the ledger, or leave out resource_class and sort by name or state."
        )


class RankedHostsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of a list of hosts. A host is listed if it meets all criteria."""

    sort: Annotated[
        Literal["name", "state", "used", "free"],
        Meta(
            description="`used`: those with the largest share in use first, of `resource_class`, else of "
            "their fullest class; `free`: those with the most units of `resource_class` free; `state`: those "
            "that are down, then the disabled ones. Equal ones by name."
        ),
    ] = "name"
    resource_class: Annotated[
        Name | None, Meta(description="Only hosts that have, or have in use, this resource class.")
    ] = None
    zone: Annotated[Name | None, Meta(description="Only those of an availability zone.")] = None
    cell: Annotated[
        Annotated[str, Meta(max_length=MAX_NAME)] | None,
        Meta(description="Only those of a cell; empty: those without an agent."),
    ] = None
    state: Annotated[HostState | None, Meta(description="Only those in a state.")] = None
    search: Annotated[
        Name | None, Meta(description="Only those with this in the name, in capitals or not.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Hosts on a page.")] = DEFAULT_PAGE
    offset: Annotated[
        int, Meta(ge=0, le=_FARTHEST, description="Hosts before the page, in the order of `sort`.")
    ] = 0


class HostAmounts(msgspec.Struct, forbid_unknown_fields=True):
    """Amounts of a resource class, in units of the class.

    `used` of `capacity`, which is `total` less `reserved`, times the allocation ratio.
    """

    capacity: Count
    used: Count
    reserved: Count
    total: Count


class RankedHost(msgspec.Struct, forbid_unknown_fields=True):
    """A host.

    `node` is its root provider, `nodename` the name of the node. `state`: `up`, `disabled` (by an operator,
    its agent or the trait `COMPUTE_STATUS_DISABLED`) or `down` (its agent is silent). `cell` is empty without
    an agent. `instances`: those that the agent reports, and claims since the report. `resources`: by class,
    the sums over its tree of providers; none if placement does not have the host, or is reached over HTTP.
    """

    host: str
    nodename: str
    node: str
    zone: str
    cell: str
    state: HostState
    instances: int
    resources: dict[str, HostAmounts]


class RankedHostPage(msgspec.Struct, forbid_unknown_fields=True):
    """Hosts from `offset` on. `matching` is the number of all that meet the criteria: of these `up`,
    `disabled` and `down`. `hosts_known`: all hosts. `version`: of the ledger, null if it is not known."""

    hosts: list[RankedHost]
    matching: Count
    up: Count
    disabled: Count
    down: Count
    hosts_known: Count
    version: int | None


class _Listing(NamedTuple):
    """The data of a page: nodes by name, and for each its zone and state by number."""

    table: NodeTable
    nodes: Rows
    zone_names: list[str]
    zones: Rows
    states: States


async def list_ranked_hosts(service: SchedulerService, req: Request, resp: Response) -> msgspec.Raw:
    """List hosts as the scheduler sees them, with what placement has of each.

    Pages are counted, not marked: the order changes with every claim.
    """
    query: RankedHostsQuery = req.query
    if query.sort == "free" and query.resource_class is None:
        raise BadRequest("sort=free needs a resource_class: units of different classes cannot be compared")
    await service.refresh()
    table = service.scheduler.table
    nodes = service.layouts.by_name()
    zones = service.layouts.zones(nodes)
    oldest = service.clock() - service.options.service_down_time

    def compute(fleet: Fleet | None) -> bytes:
        found = _Listing(table, nodes, *zones, host_states(table, nodes, oldest, fleet))
        return _page(found, query, fleet)

    if service.queries is None:
        if query.sort == "used" or query.resource_class is not None:
            raise AmountsUnknown
        return msgspec.Raw(compute(None))
    cost = (query.sort, query.resource_class is None, query.search is None, query.limit)
    return msgspec.Raw(await service.queries.answer(("hosts", *cost), unchecked, compute))


def _page(found: _Listing, query: RankedHostsQuery, fleet: Fleet | None) -> bytes:
    keep = _chosen(found, query, fleet)
    share: Float64 | None = None
    if fleet is not None and (query.resource_class is not None or query.sort in ("used", "free")):
        share, there = _ranks(found, query, fleet)
        keep &= there
    if query.sort == "state":
        share = found.states.astype(np.float64)
    places = np.flatnonzero(keep)
    if query.sort != "name" and share is not None:
        places = places[largest(share[places], query.offset + query.limit)]
    shown = places[query.offset : query.offset + query.limit].tolist()
    if fleet is not None:
        fleet.meter.spend(SUMMARY * len(shown))
    up, disabled, down = np.bincount(found.states[keep], minlength=len(STATES)).tolist()
    page = RankedHostPage(
        hosts=[_host(found, place, fleet) for place in shown],
        matching=up + disabled + down,
        up=up,
        disabled=disabled,
        down=down,
        hosts_known=len(found.nodes),
        version=None if fleet is None else fleet.version,
    )
    return msgspec.json.encode(page)


def _chosen(found: _Listing, query: RankedHostsQuery, fleet: Fleet | None) -> Bools:
    """Return the nodes that meet the criteria but that of the resource class: bool[len(nodes)]."""
    table, nodes = found.table, found.nodes
    keep: Bools = np.ones(len(nodes), dtype=np.bool_)
    if query.zone is not None:
        keep &= found.zones == _place(query.zone, found.zone_names)
    if query.cell is not None:
        keep &= table.cell[nodes] == _place(query.cell, table.cells)
    if query.state is not None:
        keep &= found.states == STATES.index(query.state)
    if query.search is not None:
        if fleet is not None:
            fleet.meter.spend(len(nodes) // _IN_SEARCH)
        wanted = query.search.lower()
        hosts, nodenames = table.hosts, table.nodenames
        keep &= np.fromiter(
            (
                wanted in hosts[index].lower() or wanted in nodenames[index].lower()
                for index in nodes.tolist()
            ),
            dtype=np.bool_,
            count=len(nodes),
        )
    return keep


def _place(name: str, names: list[str]) -> int:
    return names.index(name) if name in names else -1


def _ranks(found: _Listing, query: RankedHostsQuery, fleet: Fleet) -> tuple[Float64, Bools]:
    """Return the number that each node is sorted by, and the nodes with the class: float64 and bool."""
    classes = [query.resource_class] if query.resource_class is not None else fleet.inventoried_classes()
    best: Float64 = np.full(len(found.nodes), -np.inf)
    there: Bools = np.full(len(found.nodes), query.resource_class is None)
    for name in classes:
        amounts = node_amounts(found.table, fleet, name, found.nodes)
        if query.resource_class is not None:
            there = (amounts.capacity > 0) | (amounts.used > 0)
        if query.sort == "free":
            rank = (amounts.capacity - amounts.used).astype(np.float64)
        else:
            rank = amounts.used / np.maximum(amounts.capacity, 1)
        best = np.maximum(best, rank)
    return best, there


def _host(found: _Listing, place: int, fleet: Fleet | None) -> RankedHost:
    table, index = found.table, found.nodes.item(place)
    row = -1 if fleet is None else fleet.find_row(table.nodes[index])
    amounts = {} if fleet is None or row < 0 else amounts_of_tree(fleet, row)
    claims = table.outstanding.sums(index)
    return RankedHost(
        host=table.hosts[index],
        nodename=table.nodenames[index],
        node=table.nodes[index],
        zone=found.zone_names[found.zones.item(place)],
        cell=table.cells[table.cell.item(index)],
        state=STATES[found.states.item(place)],
        instances=table.report(index).num_instances + (0 if claims is None else claims.instances),
        resources={name: HostAmounts(*each) for name, each in amounts.items()},
    )
