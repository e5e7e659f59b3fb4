"""A host: its place and state, its provider tree and who holds it, its hardware, builds and history."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roost.conductor.hosts.lookup import Located
from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.page import TimedQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.host_hardware import HostHardware, host_hardware
from roost.dashboard.views.host_history import HostHistory, read_history
from roost.dashboard.views.host_holders import Holders, read_holders
from roost.dashboard.views.host_tree import ShownTree, provider_tree
from roost.model.errors import OperatorError
from roost.model.node import NodeReport
from roost.model.operator_word import Subject
from roost.scheduler.nodes.host_states import STATES, HostState
from roost.state.api_database.consumers import find_consumers
from roost.state.api_database.host_mappings import HostElsewhere, NoSuchCell, NoSuchHost
from roost.state.api_database.mappings import find_mappings
from roost.storage import StorageError
from roost.web.errors import NotFound
from roost.web.request import Request

MOST_ROWS: Final = 5_000
"""Providers of a tree whose consumers are listed at most."""


class HostPageQuery(TimedQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of a host. ``page``: of its consumers."""

    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class HostAggregateRow(msgspec.Struct, frozen=True):
    """A host aggregate that a host is in."""

    uuid: str
    name: str
    metadata: dict[str, str]


class WhyDisabled(msgspec.Struct, frozen=True):
    """One reason why a host gets no new instances.

    ``subject``: what is disabled: ``cell``, ``host``, ``node``, or ``agent`` if its agent says so.
    ``by``: the user, None if it is not known. ``at``: seconds since the epoch.
    """

    subject: str
    reason: str | None = None
    by: str | None = None
    at: float | None = None


class PastOfHost(msgspec.Struct, frozen=True):
    """The moment of a host that is shown as it was. ``asked``: the moment as it was asked for.

    ``previous``: the last commit up to it that changed the host; ``next``: the first one after it; None if
    the index has none.
    """

    asked: str
    previous: int | None
    next: int | None


class HostPageView(msgspec.Struct, frozen=True, kw_only=True):
    """A host.

    ``report``: of its agent, with 0 as its ``last_seen``; None: no agent reports this provider.
    ``last_seen``: seconds since the epoch; None: only up or down is known. ``silent_cell``: its cell does not
    answer. ``tree``: None: placement has no such provider, or (``version`` None) is reached over HTTP.
    ``session``: since when its agent has the present session. ``held``: why its agent carries out no orders.
    ``unknown``: parts that cannot be shown, with the reason. ``past``: it is as of a
    moment: there are no states, hardware and history then. ``names``: of instances, by their uuids.
    """

    at: float
    version: int | None
    node: str
    name: str
    nodename: str | None = None
    zone: str = ""
    rack: str = ""
    cell: str = ""
    position: int | None = None
    state: HostState | None = None
    why: tuple[WhyDisabled, ...] = ()
    last_seen: float | None = None
    session: float | None = None
    silent_cell: bool = False
    held: str | None = None
    refused: str | None = None
    report: NodeReport | None = None
    aggregates: tuple[HostAggregateRow, ...] = ()
    tree: ShownTree | None = None
    holders: Holders | None = None
    hardware: HostHardware | None = None
    history: HostHistory
    unknown: dict[str, str] = {}
    past: PastOfHost | None = None
    names: dict[str, str] = {}

    @property
    def at_asked(self) -> str | None:
        """The moment that was asked for, for links of the page; None: it is as of now."""
        return None if self.past is None else self.past.asked


async def host_view(service: DashboardService, req: Request, uuid: str) -> HostPageView:
    """Return a host as it is now. Raises `NotFound`."""
    query: HostPageQuery = req.query
    now = await service.hosts.now()
    index = service.table.index_of_node(uuid)
    row = -1 if now.fleet is None else now.fleet.find_row(uuid)
    if index is None and (row < 0 or now.fleet is None or now.fleet.parent.item(row) >= 0):
        raise _not_found(now, uuid, row)
    view = _of_now(now, uuid, index, row)
    rows = [] if now.fleet is None or row < 0 else now.fleet.subtree(row)[:MOST_ROWS]
    unknown: dict[str, str] = {}
    holders, located, history = await asyncio.gather(
        _holders(service, rows, query.page, unknown),
        _located(service.cloud, view, unknown),
        read_history(service, view.name if index is not None else None, unknown),
    )
    view = msgspec.structs.replace(view, holders=holders, history=history, unknown=unknown)
    view = msgspec.structs.replace(view, names=await names_on(service.cloud, view))
    return view if located is None else _with_words(service, view, located)


def _of_now(now: HostsNow, uuid: str, index: int | None, row: int) -> HostPageView:
    """Return what the node table and the fleet have of a host."""
    fleet = now.fleet
    tree = None if fleet is None or row < 0 else provider_tree(fleet, row)
    nothing = HostHistory((), (), None)
    if index is None:
        name = uuid if fleet is None else fleet.name(row)
        return HostPageView(at=now.at, version=now.version, node=uuid, name=name, tree=tree, history=nothing)
    table, position = now.table, now.positions.item(index)
    group = now.group_at(position)
    host, nodename, seen = table.hosts[index], table.nodenames[index], table.last_seen[table.service[index]]
    assigned = {} if fleet is None else fleet.assigned.on(uuid)
    return HostPageView(
        at=now.at,
        version=now.version,
        node=uuid,
        name=host,
        nodename=None if nodename in ("", host) else nodename,
        zone=group.zone,
        rack=group.label,
        cell=group.cell,
        position=position,
        state=STATES[now.states.item(position)],
        why=_disabled(now, index),
        last_seen=float(seen) if abs(seen) < 1e15 else None,
        # JSON has no infinity, by which the table says that a host is up or down now.
        report=msgspec.structs.replace(table.report(index), last_seen=0.0),
        aggregates=tuple(
            HostAggregateRow(each.uuid, each.name, each.metadata) for each in table.aggregates(index)
        ),
        tree=tree,
        hardware=host_hardware(table, index, assigned),
        history=nothing,
    )


def _disabled(now: HostsNow, index: int) -> tuple[WhyDisabled, ...]:
    table = now.table
    report = table.report(index)
    subjects = {
        "cell": Subject(report.cell),
        "host": Subject(report.cell, report.host),
        "node": Subject(report.cell, report.host, report.node),
    }
    found = [WhyDisabled(name) for name, subject in subjects.items() if subject in table.disabled]
    if not report.enabled:
        found.append(WhyDisabled("agent"))
    return tuple(found)


async def names_on(cloud: CloudReads | None, view: HostPageView) -> dict[str, str]:
    """Return the names of the instances on a page by uuids and consumers; those without one are left out."""
    if cloud is None:
        return {}
    shown = {each.instance for each in view.history.attempts}
    shown |= {each.instance for each in view.history.events if each.instance is not None}
    if view.holders is not None:
        shown |= {each.consumer for each in view.holders.holders}
    if view.hardware is not None:
        shown |= view.hardware.holders
    try:
        drawn = await cloud.api.read(find_consumers(tuple(sorted(shown))))
        found = await cloud.api.read(find_mappings(tuple(sorted({*shown, *drawn.values()}))))
    except StorageError as error:
        view.unknown["names of instances"] = str(error)
        return {}
    names = {uuid: each.name for uuid, each in found.items() if each.name is not None}
    return names | {each: names[of] for each, of in drawn.items() if of in names}


async def _holders(
    service: DashboardService, rows: Sequence[int], page: int, unknown: dict[str, str]
) -> Holders | None:
    if service.ledger is None or not rows:
        return None
    try:
        return await service.ledger.database.read(lambda connection: read_holders(connection, rows, page))
    except StorageError as error:
        unknown["consumers"] = str(error)
        return None


async def _located(cloud: CloudReads | None, view: HostPageView, unknown: dict[str, str]) -> Located | None:
    """Return what the databases of the cloud have of a host."""
    if cloud is None or view.report is None or not view.cell:
        return None
    try:
        return await cloud.hosts.find(view.name, view.cell)
    except NoSuchHost:
        return None
    except (StorageError, NoSuchCell, HostElsewhere, OperatorError) as error:
        unknown["words of operators"] = str(error)
        return None


def _with_words(service: DashboardService, view: HostPageView, located: Located) -> HostPageView:
    """Return the host with operators' words and the session of its agent."""
    said = located.said
    why = tuple(
        msgspec.structs.replace(each, reason=said.reason, at=said.at, by=view.history.disabled_by)
        if each.subject == "host" and said is not None
        else each
        for each in view.why
    )
    described = located.described
    if described is None:
        return msgspec.structs.replace(view, why=why, silent_cell=True)
    if said is None and described.reason is not None:
        why = tuple(
            msgspec.structs.replace(each, reason=described.reason) if each.subject == "host" else each
            for each in why
        )
    return msgspec.structs.replace(
        view,
        why=why,
        session=None if described.session is None else described.session.since,
        held=None if described.held is None else described.held.reason,
        refused=described.refused,
    )


def _not_found(now: HostsNow, uuid: str, row: int) -> NotFound:
    if now.fleet is not None and row >= 0:
        root = now.fleet.uuid(now.fleet.root.item(row))
        return NotFound(f"{uuid} is a provider in the tree of the host {root}, not a host.")
    return NotFound(f"There is no host with the root provider {uuid}. It may have been removed.")
