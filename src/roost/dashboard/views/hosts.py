"""The list of hosts: a page of it, searched and sorted by the server."""

from collections import Counter
from typing import Annotated, Final, Literal

import falcon
import msgspec
import numpy as np
from msgspec import Meta

from roost.dashboard import addresses
from roost.dashboard.conventions import wants_json
from roost.dashboard.fleet.criteria import HostCriteria, Text, chosen, filter_choices
from roost.dashboard.fleet.hosts import HostsNow, class_rank
from roost.dashboard.page import TimedQuery
from roost.dashboard.past.hosts_then import hosts_shown
from roost.dashboard.service import DashboardService
from roost.fleet.columns import Bools, Float64, Rows, largest
from roost.records import RecordsError
from roost.records.records import CountableRecords
from roost.records.summary import FailedBuilds
from roost.scheduler.nodes.host_states import STATES, HostState
from roost.web.request import Request

HOSTS_ON_A_PAGE: Final = 50

HostSort = Literal["name", "used", "free", "state", "failures"]

DAY: Final = 86_400.0
"""Seconds of which failed builds are counted."""

MOST_COLUMNS: Final = 3
"""Resource classes that have a column at most."""


class HostListQuery(TimedQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the list of hosts. ``resource_class``: the one that ``used`` and ``free`` sort by."""

    search: Text = ""
    state: Literal["", "up", "disabled", "down"] = ""
    zone: Text = ""
    rack: Text = ""
    cell: Text = ""
    trait: Text = ""
    aggregate: Text = ""
    resource_class: Text = msgspec.field(name="class", default="")
    sort: HostSort = "name"
    page: Annotated[int, Meta(ge=1, le=10_000_000)] = 1

    @property
    def criteria(self) -> HostCriteria:
        """The hosts that are listed."""
        return HostCriteria(
            search=self.search,
            state=self.state,
            zone=self.zone,
            rack=self.rack,
            cell=self.cell,
            trait=self.trait,
            aggregate=self.aggregate,
        )


class ClassAmount(msgspec.Struct, frozen=True):
    """Use and capacity of a class on a host."""

    used: int
    capacity: int


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the list.

    ``node``: its root provider. ``nodename``: None if it is the host's name. ``failures``: failed builds of
    the last day; None: they are not counted. ``failed_builds``: since the last successful one, as the host
    reports. ``placed``: placement has a provider of it. ``state``: None as of a moment, as it is not kept.
    """

    name: str
    nodename: str | None
    node: str
    zone: str
    rack: str
    cell: str
    state: HostState | None
    instances: int
    failures: int | None
    failed_builds: int
    placed: bool
    amounts: dict[str, ClassAmount]


class HostsView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list of hosts.

    ``matching``: of all hosts those that meet the criteria; ``states``: their number by state. ``classes``:
    the columns. ``failures_known``: failed builds of the last day are counted; ``failures_unknown``: why not.
    ``exact``: the address of the only host of just the name that was searched, to which a browser is sent.
    """

    at: float
    version: int | None
    criteria: HostCriteria
    resource_class: str
    sort: HostSort
    page: int
    all_hosts: int
    matching: int
    states: dict[HostState, int]
    hosts: tuple[HostRow, ...]
    classes: tuple[str, ...]
    known_classes: tuple[str, ...]
    zones: tuple[str, ...]
    racks: tuple[str, ...]
    cells: tuple[str, ...]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    failures_unknown: str | None
    exact: str | None = None
    past: str | None = None


async def hosts_view(service: DashboardService, req: Request) -> HostsView:
    """Return a page of the list of hosts as it is now, or with the use as of a moment."""
    query: HostListQuery = req.query
    criteria = query.criteria
    of_day, unknown = await failures_of_day(service)
    now = await hosts_shown(service, query.at, searched=bool(criteria.search))
    exact = _exact(now, criteria.search)
    if exact is not None and not wants_json(req):
        raise falcon.HTTPSeeOther(exact)
    failures = _counted(now, of_day)
    found = chosen(now, service.hosts, criteria)
    name = query.resource_class or next(iter(now.classes), "")
    matching = int(found.sum())
    query.page = page = min(query.page, max(1, -(-matching // HOSTS_ON_A_PAGE)))
    order = _order(now, found, query, name, failures)
    shown = order[(page - 1) * HOSTS_ON_A_PAGE : page * HOSTS_ON_A_PAGE].tolist()
    counts = np.bincount(now.states[found], minlength=len(STATES)).tolist()
    rows = tuple(_row(now, position, failures) for position in shown)
    choices = filter_choices(now)
    return HostsView(
        at=now.at,
        version=now.version,
        criteria=criteria,
        resource_class=name,
        sort=query.sort,
        page=page,
        all_hosts=len(now),
        matching=matching,
        states=dict(zip(STATES, counts, strict=True)) if now.states_known else {},
        hosts=rows,
        classes=_columns(rows, name),
        known_classes=choices.classes,
        zones=choices.zones,
        racks=choices.racks,
        cells=choices.cells,
        traits=choices.traits,
        aggregates=choices.aggregates,
        failures_unknown=unknown,
        exact=exact,
        past=query.at,
    )


async def failures_of_day(service: DashboardService) -> tuple[list[FailedBuilds] | None, str | None]:
    """Return the failed builds of the last day by node; without them None, and why."""
    return await service.kept("failed builds", 10.0, lambda: _failures(service))


async def _failures(service: DashboardService) -> tuple[list[FailedBuilds] | None, str | None]:
    backend = service.records.backend
    if not isinstance(backend, CountableRecords):
        return None, "the records are in a file, whose attempts are not counted"
    try:
        return await backend.failed_builds(service.clock() - DAY), None
    except RecordsError as error:
        return None, str(error)


def _counted(now: HostsNow, failures: list[FailedBuilds] | None) -> dict[int, int] | None:
    """Return the failed builds by position of the host; hosts that are no more are left out."""
    if failures is None:
        return None
    found: dict[int, int] = {}
    for each in failures:
        index = now.table.index_of_node(each.node) if each.node else now.table.index(each.host)
        if index is not None:
            position = now.positions.item(index)
            found[position] = found.get(position, 0) + each.number
    return found


def _order(
    now: HostsNow, found: Bools, query: HostListQuery, name: str, failures: dict[int, int] | None
) -> Rows:
    """Return the positions of the hosts that are listed, as far as the page: intp."""
    in_order = now.in_name_order
    in_order = in_order[found[in_order]]
    rank: Float64
    amounts = now.amounts(name)
    match query.sort:
        case "used":
            rank = np.where(amounts.capacity > 0, amounts.used / np.maximum(amounts.capacity, 1), -1.0)
        case "free":
            rank = np.where(amounts.capacity > 0, amounts.capacity - amounts.used, -(2.0**62))
        case "state":
            rank = now.states.astype(np.float64)
        case "failures":
            rank = now.table.failed_builds[now.layout.nodes]
            if failures is not None:
                rank = np.zeros(len(now))
                rank[list(failures)] = list(failures.values())
        case _:
            return in_order
    return in_order[largest(rank[in_order], query.page * HOSTS_ON_A_PAGE)]


def _row(now: HostsNow, position: int, failures: dict[int, int] | None) -> HostRow:
    table, index = now.table, now.layout.nodes.item(position)
    group = now.group_at(position)
    host, nodename, node = table.hosts[index], table.nodenames[index], table.nodes[index]
    amounts = now.amounts_of(position)
    claims = table.outstanding.sums(index)
    return HostRow(
        name=host,
        nodename=None if nodename in ("", host) else nodename,
        node=node,
        zone=group.zone,
        rack=group.label,
        cell=group.cell,
        state=STATES[now.states.item(position)] if now.states_known else None,
        instances=table.report(index).num_instances + (0 if claims is None else claims.instances),
        failures=None if failures is None else failures.get(position, 0),
        failed_builds=int(table.failed_builds.item(index)),
        placed=amounts is not None,
        amounts={name: ClassAmount(each.used, each.capacity) for name, each in (amounts or {}).items()},
    )


def _columns(rows: tuple[HostRow, ...], name: str) -> tuple[str, ...]:
    """Return the classes that have a column: the chosen one first, then those that most hosts have."""
    counts = Counter(each for row in rows for each in row.amounts)
    common = sorted(counts, key=lambda each: (class_rank(each)[0], -counts[each], each))
    return (*([name] if name else []), *(each for each in common if each != name))[:MOST_COLUMNS]


def _exact(now: HostsNow, search: str) -> str | None:
    wanted = search.strip()
    if not wanted:
        return None
    indexes = {*now.table.indexes_of_requested_host(wanted)}
    indexes |= {*now.table.indexes_of_requested_nodename(wanted)}
    if (of_uuid := now.table.index_of_node(wanted.lower())) is not None:
        indexes.add(of_uuid)
    return addresses.host(now.table.nodes[min(indexes)]) if len(indexes) == 1 else None
