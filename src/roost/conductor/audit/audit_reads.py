"""Reads claims, mappings and rows of a batch of instances, and compares them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.audit.findings import UNKNOWN_GUEST, ClaimedNode, NodeSign, Observed
from roost.conductor.comparison import LEAKED_CLAIM, ApiState, CellState, judge
from roost.conductor.context import PlacementContext
from roost.ledger import Held
from roost.ledger.findings import Finding
from roost.model.instance import ON_ITS_HOST, Instance
from roost.model.move import ARRIVING, Move
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.errors import NotFound
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.cell_mappings import CellMapping, mapped_cells
from roost.state.api_database.consumers import find_consumers
from roost.state.api_database.mappings import InstanceMapping, find_mappings
from roost.state.api_database.past import find_noted, find_past
from roost.state.api_database.request_reads import waiting_requests
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.guests import UnknownGuest, unknown_guests_of
from roost.state.cell_database.host_admission import read_held_hosts
from roost.state.cell_database.host_work import read_orders, session_name
from roost.state.cell_database.move_rows import attempts_of_moves
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.tables import nodes
from roost.state.leases import read_stamps
from roost.storage import StorageError, in_batches, transaction

AT_ONCE = 50
"""Requests to placement at the same time."""


class Look(NamedTuple):
    """The result of one look: differences, hosts of the nodes concerned, cells that could not be read.

    ``signs``: by node. ``unread``: the reason by cell.
    """

    observed: list[Observed]
    signs: dict[str, NodeSign]
    unread: dict[str, str]


@transaction
def read_mappings_and_cells(
    connection: Connection, uuids: tuple[str, ...]
) -> tuple[dict[str, InstanceMapping], dict[str, CellMapping]]:
    """Return the mappings of some instances, and all cells."""
    return find_mappings(uuids)(connection), mapped_cells(connection)


@transaction
def find_waiting_instances(connection: Connection, uuids: frozenset[str]) -> frozenset[str]:
    """Return which of some instances belong to requests that are not finished."""
    return uuids.intersection(uuid for request in waiting_requests(connection) for uuid in request.instances)


class InCell(msgspec.Struct, frozen=True):
    """The facts of some instances in a cell.

    ``instances``: their rows. ``guests``: reported guests that the cell neither knows nor has ordered to be
    destroyed. ``nodes``: the nodes of the instances and of their hosts. ``moves``: those of the instances,
    and those among the uuids.
    """

    instances: dict[str, Instance]
    guests: dict[str, list[UnknownGuest]]
    nodes: dict[str, NodeSign]
    moves: dict[str, Move] = {}


@transaction
def look_into_cell(
    connection: Connection, cell: str, uuids: tuple[str, ...], roots: tuple[str, ...]
) -> InCell:
    """Return the facts of some instances and of some nodes in a cell."""
    found = find_instances(uuids)(connection)
    # A move is a consumer too: it is looked at for its instance, and for its own claim.
    named = {*uuids, *(each.move for each in found.values() if each.move is not None)}
    moves = find_moves(tuple(named))(connection)
    guests = unknown_guests_of(connection, uuids)
    if guests:
        owing = {
            (each.host, each.instance, each.attempt)
            for each in read_orders(connection, {guest.host for guest in guests})
        }
        known = {(each.host, each.uuid, each.attempt) for each in found.values() if each.state in ON_ITS_HOST}
        known |= attempts_of_moves(connection, {guest.host for guest in guests})
        guests = [each for each in guests if (each.host, each.instance, each.attempt) not in owing | known]
    hosts = {each.host for each in found.values() if each.host is not None}
    hosts |= {each.host for each in guests}
    of_nodes: dict[str, str] = {}
    for column, names in ((nodes.c.node, roots), (nodes.c.host, sorted(hosts))):
        for some in in_batches(names):
            query = sa.select(nodes.c.node, nodes.c.host).where(column.in_(some))
            of_nodes.update((row.node, row.host) for row in connection.execute(query))
    stamps = read_stamps(connection, {session_name(host) for host in of_nodes.values()})
    held = read_held_hosts()(connection)
    signs = {
        node: NodeSign(
            host,
            cell,
            stamps.get(session_name(host)),
            held[host].reason if host in held else None,
        )
        for node, host in of_nodes.items()
    }
    strays: defaultdict[str, list[UnknownGuest]] = defaultdict(list)
    for guest in guests:
        strays[guest.instance].append(guest)
    return InCell(found, dict(strays), signs, moves)


async def look(context: PlacementContext, uuids: Collection[str], roots: Mapping[str, str]) -> Look:
    """Compare claims, mappings and rows of some instances. ``roots``: the root of each provider.

    Raises: `StorageError` of the API database, and what placement raises.
    """
    given = tuple(uuids)
    # An instance that was unshelved and its consumers are looked at together, whichever was named.
    drawn = await context.read(API, find_consumers(given))
    names = tuple({*given, *drawn, *drawn.values()})
    claims = await context.placement.holdings(names)
    mappings, cells = await context.read(API, read_mappings_and_cells(names))
    claimed = tuple(sorted({roots[each] for each in _providers(claims.values()) if each in roots}))
    found: dict[str, InCell] = {}
    unread: dict[str, str] = {}
    for cell in cells:
        try:
            found[cell] = await context.read(f"cell/{cell}", look_into_cell(cell, names, claimed))
        except StorageError as error:
            unread[cell] = one_line(error)
    signs = {node: sign for cell in found.values() for node, sign in cell.nodes.items()}
    here = {each.node for cell in found.values() for each in cell.instances.values()}
    state = ApiState(
        claims=claims,
        roots=dict(roots),
        sharing=await _sharing(context, _providers(claims.values()), roots, signs.keys() | here),
        waiting=frozenset(),
        mappings={uuid: each.cell for uuid, each in mappings.items()},
        deleted=frozenset(uuid for uuid, each in mappings.items() if each.deleted),
        cells=cells,
    )
    states = {
        name: CellState([*cell.instances.values()], _by_host(cell), cell.moves)
        for name, cell in found.items()
    }
    strays = [*_unknown_guests(found)]
    suspects = frozenset(map(_uuid, (*_judged(state, states, names), *strays)))
    if not suspects:
        return Look([], signs, unread)
    # Read only now: few instances are suspected, and many requests may wait.
    waiting = await context.read(API, find_waiting_instances(suspects))
    late = await context.read(API, find_noted(suspects))
    past = await context.read(API, find_past(tuple(sorted(suspects))))
    observed = []
    state = msgspec.structs.replace(state, waiting=waiting)
    for finding in (*_judged(state, states, names), *strays):
        uuid = _uuid(finding)
        if finding.kind == LEAKED_CLAIM and uuid in late:
            # The release of late claims reads it more often than an audit does, and frees it.
            continue
        of = drawn.get(uuid, uuid)
        rows = {name: cell.instances[of] for name, cell in found.items() if of in cell.instances}
        consumer = uuid
        # A finding on a consumer that the instance had before is about what that holds, and nothing else.
        if uuid == of and not finding.subject.startswith("consumer "):
            consumer = next((row.consumer for row in rows.values()), uuid)
        held = claims.get(consumer)
        concerned = {row.node for row in rows.values() if row.node is not None}
        if held is not None:
            concerned |= {roots.get(each, each) for each in held.allocations if each not in state.sharing}
        guests = {name: cell.guests[of] for name, cell in found.items() if of in cell.guests}
        hosts = {guest.host for each in guests.values() for guest in each}
        concerned |= {node for node, sign in signs.items() if sign.host in hosts}
        observed.append(
            Observed(
                kind=finding.kind,
                instance=uuid,
                detail=finding.detail,
                held=held,
                mapping=mappings.get(of),
                rows=rows,
                nodes=tuple(sorted(concerned)),
                is_past=of in past,
                move=next(
                    (
                        move
                        for cell in found.values()
                        if (move := cell.moves.get(uuid)) is not None and move.side != ARRIVING
                    ),
                    None,
                ),
                guests=guests,
                is_whole=not unread,
                unfilled=tuple(sorted(_built_on(rows.values()) - roots.keys())),
                claimed_on=_claimed_on(held, state, signs),
            )
        )
    return Look(observed, signs, unread)


def _judged(state: ApiState, states: Mapping[str, CellState], names: Collection[str]) -> Iterator[Finding]:
    """Yield the findings about the named consumers. Of other moves it was not read what they hold."""
    return (finding for finding in judge(state, states) if _uuid(finding) in names)


def _unknown_guests(found: Mapping[str, InCell]) -> Iterator[Finding]:
    for name, cell in found.items():
        for uuid, guests in cell.guests.items():
            row = cell.instances.get(uuid)
            known = "no such instance"
            if row is not None:
                known = f"it as {row.state} on host {row.host}, attempt {row.attempt}"
            has = " and ".join(f"host {each.host} has a guest of attempt {each.attempt}" for each in guests)
            yield Finding(UNKNOWN_GUEST, f"instance {uuid}", f"{has}, but cell {name} has {known}")


async def _sharing(
    context: PlacementContext,
    providers: Iterable[str],
    roots: Mapping[str, str],
    known: Collection[str | None],
) -> frozenset[str]:
    """Return the providers that share with other trees; only those outside the known nodes are looked up."""
    sharing = []
    for provider in sorted({*providers}):
        if roots.get(provider) in known:
            continue
        try:
            traits = await context.placement.traits(provider)
        except NotFound:
            continue
        if SHARING_TRAIT in traits:
            sharing.append(provider)
    return frozenset(sharing)


def _providers(claims: Iterable[Held]) -> set[str]:
    return {provider for held in claims for provider in held.allocations}


def _claimed_on(held: Held | None, state: ApiState, signs: Mapping[str, NodeSign]) -> ClaimedNode | None:
    """Return the node whose tree has all that a consumer holds."""
    nodes = {state.roots.get(each, each) for each in ({} if held is None else held.allocations)}
    node = nodes.pop() if len(nodes) == 1 else ""
    return ClaimedNode(node, signs[node].host, signs[node].cell) if node in signs else None


def _built_on(rows: Iterable[Instance]) -> set[str]:
    """Return the providers that instances were built on."""
    return {provider for row in rows if row.selection is not None for provider in row.selection.allocations}


def _by_host(cell: InCell) -> dict[str, set[str]]:
    by_host: defaultdict[str, set[str]] = defaultdict(set)
    for node, sign in cell.nodes.items():
        by_host[sign.host].add(node)
    return dict(by_host)


def _uuid(finding: Finding) -> str:
    return finding.subject.split(" ", 1)[1]
