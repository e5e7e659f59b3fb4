"""The handlers of hosts and services over HTTP."""

from typing import Protocol

from roost.conductor.hosts.cells import CellRegistry, SeenCell
from roost.conductor.hosts.lookup import Located
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.hosts.types import (
    AddedHost,
    AddedHosts,
    CellList,
    Enabling,
    HostNodes,
    HostPage,
    HostQuery,
    HostsQuery,
    KeptProvider,
    RemovalQuery,
    Removed,
    ServiceList,
    ServicesQuery,
    ShownCell,
    ShownDrain,
    ShownFeature,
    ShownFence,
    ShownHost,
    ShownNode,
    ShownService,
    ShownSilence,
    ShownStaying,
    TokenQuery,
    WantedCell,
    WantedHosts,
    WantedMove,
)
from roost.conductor.hosts.watch import UNKNOWN, ServiceWatch, check_feature, held_back_by
from roost.conductor.requester import owner_of, requester_of
from roost.model.operator_word import Subject
from roost.model.service_version import CELL_MOVES, FEATURES, MOVES, Feature
from roost.placement.interface import Provider
from roost.state.api_database.drains import DrainWord
from roost.state.cell_database.departures import DrainProgress
from roost.state.cell_database.hosts import CellNode
from roost.web.errors import BadRequest
from roost.web.request import Request, Response

MOST_PAGES = 10
"""Pages of hosts that are read at most for one page of hosts in some states."""


class HostService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def hosts(self) -> HostRegistry: ...

    @property
    def cells(self) -> CellRegistry: ...

    @property
    def watch(self) -> ServiceWatch: ...


async def add_hosts(service: HostService, req: Request, resp: Response) -> AddedHosts:
    """Add hosts to a cell, all or none.

    Each host gets a token for its agent. No other response shows it again.
    """
    wanted: WantedHosts = req.body
    tokens = await service.hosts.add(wanted.cell, wanted.hosts, requester_of(req))
    return AddedHosts([AddedHost(host, wanted.cell, token) for host, token in tokens.items()])


async def list_hosts(service: HostService, req: Request, resp: Response) -> HostPage:
    """List hosts by page. The hosts of a cell that cannot be asked are `unknown`."""
    query: HostsQuery = req.query
    chosen: list[ShownHost] = []
    marker: str | None = query.marker or ""
    silent: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await service.hosts.lookup.page(query.limit - len(chosen), marker or "", query.cell)
        shown = (_shown(service, each) for each in page.hosts)
        chosen += [each for each in shown if _is_chosen(each, query)]
        silent.update(page.silent)
        marker = page.following
        if marker is None or len(chosen) >= query.limit:
            break
    return HostPage(chosen, marker, sorted(silent))


async def show_host(service: HostService, req: Request, resp: Response, host: str) -> ShownHost:
    """Show a host."""
    query: HostQuery = req.query
    return _shown(service, await service.hosts.lookup.find(host, query.cell))


async def change_host(service: HostService, req: Request, resp: Response, host: str) -> ShownHost:
    """Enable a host, or disable it: it gets no new instances, and those that are there stay.

    With `move` they are moved to other hosts of the cell, with `live` while they run if they can:
    `GET /v1/hosts/{host}/drain` shows how far.
    """
    query: HostQuery = req.query
    change: Enabling = req.body
    located = await service.hosts.enable(
        host,
        change.enabled,
        change.reason,
        query.cell,
        requester_of(req),
        moves=change.move,
        live=change.live,
    )
    return _shown(service, located)


async def show_host_drain(service: HostService, req: Request, resp: Response, host: str) -> ShownDrain:
    """Show how far a host is emptied: instances that are left, that move, and that cannot move, and why."""
    query: HostQuery = req.query
    return _drain(service, *(await service.hosts.progress(host, cell=query.cell)))


async def show_node_drain(
    service: HostService, req: Request, resp: Response, host: str, node: str
) -> ShownDrain:
    """Show how far a node is emptied, as of a host."""
    query: HostQuery = req.query
    return _drain(service, *(await service.hosts.progress(host, node, query.cell)))


async def move_host(service: HostService, req: Request, resp: Response, host: str) -> AddedHost:
    """Move an empty host, whose agent has ended, to another cell. It gets a new token there."""
    query: HostQuery = req.query
    move: WantedMove = req.body
    token = await service.hosts.move(host, move.cell, query.cell, requester_of(req))
    return AddedHost(host, move.cell, token)


async def renew_token(service: HostService, req: Request, resp: Response, host: str) -> AddedHost:
    """Make a new token for a host's agent. The old one is valid until the new one is used."""
    query: TokenQuery = req.query
    cell, token = await service.hosts.renew_token(host, query.cell, revoke=query.revoke)
    return AddedHost(host, cell, token)


async def accept_host(service: HostService, req: Request, resp: Response, host: str) -> None:
    """Accept the state of the cell's database for a host whose agent is held.

    The agent is held because the database is another one, was restored to an earlier state, or knows none of
    its guests. From now on it carries out orders again.
    """
    query: HostQuery = req.query
    await service.hosts.accept(host, query.cell)


async def remove_host(service: HostService, req: Request, resp: Response, host: str) -> Removed:
    """Remove a host without instances, whose agent has ended, and its providers from placement.

    Providers that its agent did not make stay. With `force` and `evidence` its instances are ended: those
    being built are built elsewhere, those that ran are in error, and orders to destroy are forgotten. While
    claims are being freed the response is a 409: repeat the request.
    """
    query: RemovalQuery = req.query
    if query.force != (query.evidence is not None and bool(query.evidence.strip())):
        raise BadRequest("force and evidence go together: say how it is known that no guest runs there")
    evidence = None if query.evidence is None else _evidence(req, host, query.evidence)
    by = requester_of(req)
    return _removed(host, *(await service.hosts.remove(host, cell=query.cell, evidence=evidence, by=by)))


async def list_nodes(service: HostService, req: Request, resp: Response, host: str) -> HostNodes:
    """List the nodes of a host."""
    query: HostQuery = req.query
    cell, nodes = await service.hosts.lookup.nodes(host, query.cell)
    return HostNodes(host, cell, [_node(each) for each in nodes])


async def change_node(service: HostService, req: Request, resp: Response, host: str, node: str) -> ShownNode:
    """Enable a node, or disable it: it gets no new instances, and those that are there stay.

    With `move` they are moved to other hosts of the cell.
    """
    query: HostQuery = req.query
    change: Enabling = req.body
    changed = await service.hosts.enable_node(
        host,
        node,
        change.enabled,
        change.reason,
        query.cell,
        requester_of(req),
        moves=change.move,
        live=change.live,
    )
    return _node(changed)


async def remove_node(service: HostService, req: Request, resp: Response, host: str, node: str) -> Removed:
    """Remove a node without instances, and its providers from placement.

    An agent that still reports the node makes it anew.
    """
    query: HostQuery = req.query
    return _removed(host, *(await service.hosts.remove_node(host, node, query.cell)))


async def list_services(service: HostService, req: Request, resp: Response) -> ServiceList:
    """List the processes and agents that hold leases in the API database and the cells' databases.

    `up` and `down` are as this process sees them: no clocks are compared.
    """
    query: ServicesQuery = req.query
    kinds = None if query.kind is None else frozenset((query.kind,))
    found = service.watch.services(kinds)
    shown = [
        ShownService(
            name=each.lease.name,
            kind=each.lease.kind,
            host=each.lease.host,
            cell=each.cell,
            state=each.state,
            service_version=each.lease.service_version,
            since=each.lease.since,
            holder=each.lease.holder,
            epoch=each.lease.epoch,
        )
        for each in found
        if query.cell is None or each.cell == query.cell
    ]
    features = [
        ShownFeature(each.name, each.since, each.what, len(held_back_by(service.watch, each)))
        for each in FEATURES
    ]
    return ServiceList(shown, features, service.watch.silent())


async def add_cell(service: HostService, req: Request, resp: Response) -> ShownCell:
    """Add a cell. The configuration of each process names its database, which must be set up and answer."""
    wanted: WantedCell = req.body
    by = requester_of(req)
    added = await service.cells.add(wanted.name, wanted.section, lambda seen: req.keyed(_cell(seen)), by)
    return _cell(added)


async def list_cells(service: HostService, req: Request, resp: Response) -> CellList:
    """List all cells, cell0 among them."""
    return CellList([_cell(each) for each in await service.cells.list()])


async def show_cell(service: HostService, req: Request, resp: Response, name: str) -> ShownCell:
    """Show a cell."""
    return _cell(await service.cells.find(name))


async def change_cell(service: HostService, req: Request, resp: Response, name: str) -> ShownCell:
    """Enable a cell, or disable it: its hosts get no new instances, and their instances stay.

    With `move` they are moved to hosts of other cells: `GET /v1/cells/{name}/drain` shows how far.
    """
    change: Enabling = req.body
    if change.live:
        raise BadRequest("guests that go to other cells are stopped on the way: live is for hosts and nodes")
    if change.move:
        check_feature(service.watch, CELL_MOVES)
    by = requester_of(req)
    return _cell(await service.cells.enable(name, change.enabled, change.reason, by, moves=change.move))


async def show_cell_drain(service: HostService, req: Request, resp: Response, name: str) -> ShownDrain:
    """Show how far a cell is emptied: instances that are left, that move, and that cannot move, and why."""
    return _drain(service, *(await service.cells.progress(name)), feature=CELL_MOVES)


async def remove_cell(service: HostService, req: Request, resp: Response, name: str) -> None:
    """Remove a cell without hosts and instances. Its database stays as it is."""
    await service.cells.remove(name, requester_of(req))


def _drain(
    service: HostService, subject: Subject, word: DrainWord, progress: DrainProgress, feature: Feature = MOVES
) -> ShownDrain:
    return ShownDrain(
        host=subject.host or None,
        cell=subject.cell,
        node=subject.node or None,
        enabled=word.enabled,
        move=word.moves,
        live=word.live,
        left=progress.left,
        moving=progress.moving,
        moved=progress.moved,
        stuck=progress.stuck,
        waiting=max(progress.left - progress.moving - progress.stuck, 0),
        staying=[
            ShownStaying(each.instance, each.state, each.reason, each.tries) for each in progress.staying
        ],
        held_back_by=len(held_back_by(service.watch, feature)),
    )


def _cell(seen: SeenCell) -> ShownCell:
    counts = seen.counts
    return ShownCell(
        seen.mapping.name,
        seen.mapping.section,
        seen.state,
        seen.conductors,
        None if counts is None else dict(sorted(counts.instances.items())),
        seen.enabled,
        seen.reason,
        seen.hosts,
        seen.hosts_up,
    )


def _node(node: CellNode) -> ShownNode:
    return ShownNode(
        node.node,
        node.nodename,
        False if node.word is not None else node.enabled,
        node.instances,
        node.word is not None,
        None if node.word is None else node.word.reason,
    )


def _shown(service: HostService, located: Located) -> ShownHost:
    described = located.described
    if described is None:
        said = located.said
        return ShownHost(
            host=located.host,
            cell=located.cell,
            state=UNKNOWN,
            enabled=None if said is None else said.enabled,
            reason=None if said is None else said.reason,
        )
    session, fence, silence = described.session, described.fence, described.silence
    return ShownHost(
        host=located.host,
        cell=located.cell,
        state=service.watch.state_of(located.cell, session),
        enabled=described.enabled,
        reason=described.reason,
        held=None if described.held is None else described.held.reason,
        refused=described.refused,
        service_version=None if session is None else session.service_version,
        since=None if session is None else session.since,
        nodes=described.nodes,
        instances=dict(sorted(described.instances.items())),
        orders=described.orders,
        added_at=described.added_at,
        fence=None if fence is None else ShownFence(fence.seconds, fence.stop_seconds, fence.guarded),
        silence=None
        if silence is None
        else ShownSilence(silence.state, silence.words, silence.kind, silence.conductor, silence.at),
    )


def _is_chosen(host: ShownHost, query: HostsQuery) -> bool:
    """Return whether a query asks for a host. `enabled` is null if the host's cell cannot be asked."""
    in_state = query.state is None or host.state in query.state.split(",")
    return in_state and query.enabled in (None, host.enabled)


def _removed(host: str, cell: str, kept: list[Provider]) -> Removed:
    return Removed(host, cell, [KeptProvider(each.uuid, each.name) for each in kept])


def _evidence(req: Request, host: str, evidence: str) -> str:
    return f"{owner_of(req)[1]} says that no guest runs on host {host} any more: {evidence.strip()}"
