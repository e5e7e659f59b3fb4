"""The comparison of claims in placement, mappings and the instances in the cells: pure, without I/O.

The order of the conductors' steps decides which differences are errors. Each step is durable before the next,
and a process may be killed between any two:

    request accepted -> claimed -> mapped -> instance assigned in its cell -> request finished
    build failed -> claim moved to an alternate -> assigned there
    build failed -> instance abandoned -> claim freed -> instance in error
    request given up -> mapped to cell0 -> instance in error there -> claim freed -> request finished
    to be shelved -> destroyed on the host -> claim freed -> shelved
    to be unshelved -> claimed by another consumer -> assigned, or claim freed and shelved
    deletion accepted -> marked in the cell -> destroyed on the host -> claim freed -> instance forgotten
        there -> mapping forgotten

So an instance that is assigned, starting, active, stopped, lost, or about to be stopped or started has its
claim, on the tree of the node that it is assigned to, at every moment. An instance in error has none once its
request is finished. A claim without an instance belongs to a request that is still waiting or to a deletion
under way, or it has leaked. While an instance is failed, abandoned, deleting or destroyed its claim may be
anywhere or gone, and so may that of one that is offloaded or about to be unshelved. A shelved one holds
nothing. A mapping without an instance belongs to an instance on its way in (its request waits) or
out (its deletion is accepted).

A move is a consumer of its own (`roost.model.move`). While it goes on, instance and move are judged by its
state: in most the instance holds the target and the move the source, and in some a conductor is about to
change that. A claim of a move that has ended has leaked. On its way to another cell an instance may be in
both, and its mapping may name either (`roost.model.crossings`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from roost.ledger import Held
from roost.ledger.findings import Finding
from roost.model.instance import (
    ABANDONED,
    CLAIMED,
    ERROR,
    FAILED,
    OFFLOADED,
    SHELVED,
    UNSHELVING,
    Instance,
)
from roost.model.move import ARRIVING, Move
from roost.model.move_states import DELETED, ENDED, HOLDS_TARGET, RESUMING
from roost.scheduler.selection.running_selection import INSTANCE
from roost.state.api_database.cell_mappings import CellMapping

LEAKED_CLAIM = "leaked-claim"
"""Something is claimed for an instance that does not run and will not."""
MISSING_CLAIM = "missing-claim"
"""An instance is on a host without a claim."""
WRONG_HOST = "wrong-host"
"""An instance's claim is on another host than the instance."""
WRONG_CELL = "wrong-cell"
"""An instance is in another cell than its mapping says."""
UNMAPPED_INSTANCE = "unmapped-instance"
"""An instance in a cell has no mapping: conductors cannot find its cell."""
MISSING_INSTANCE = "missing-instance"
"""An instance of an accepted request is in no cell, and no request or deletion of it is under way."""
TWO_CELLS = "two-cells"
"""An instance is in two cells."""

_MAPPED = (*CLAIMED, FAILED, ABANDONED, ERROR, OFFLOADED, SHELVED, UNSHELVING)
"""States in which an instance has a mapping once its request is finished."""


class CellState(msgspec.Struct, frozen=True):
    """The content of a cell's database: its instances, the root providers of each host's nodes, and moves by
    uuid, also those that have ended."""

    instances: list[Instance]
    nodes: dict[str, set[str]]
    moves: dict[str, Move] = {}


class ApiState(msgspec.Struct, frozen=True):
    """The instances as the API database and the ledger know them, in one snapshot.

    ``claims`` by consumer, of all types. ``roots``: the root of each provider's tree. ``waiting``: instances
    of requests that are not finished. ``mappings``: the cell of each mapped instance, None where it is not
    placed. ``deleted``: the instances whose deletion is accepted. ``cells``: the mapping of each cell to its
    database.
    """

    claims: dict[str, Held]
    roots: dict[str, str]
    sharing: frozenset[str]
    waiting: frozenset[str]
    mappings: dict[str, str | None]
    deleted: frozenset[str]
    cells: dict[str, CellMapping]


def judge(api: ApiState, cells: Mapping[str, CellState]) -> Iterator[Finding]:
    """Yield the findings: every difference that is an error.

    A cell of ``api`` that is not among ``cells`` could not be read.
    """
    if not api.cells:
        return
    found: defaultdict[str, list[str]] = defaultdict(list)
    crossing: set[str] = set()
    consumers: set[str] = set()
    for name, cell in cells.items():
        for instance in cell.instances:
            found[instance.uuid].append(name)
            consumers.add(instance.consumer)
            yield from _judge_claim(api, cell, instance)
            half = cell.moves.get(instance.move or "")
            other = None if half is None else half.other_cell
            if other is not None:
                crossing.add(instance.uuid)
            yield from _judge_mapping(api, name, instance, other)
    for uuid, names in found.items():
        if len(names) > 1 and uuid not in crossing:
            yield Finding(TWO_CELLS, f"instance {uuid}", f"is in cells {', '.join(names)}")
    unread = api.cells.keys() - cells.keys()
    for uuid, mapped in api.mappings.items():
        if uuid in found or uuid in api.waiting or uuid in api.deleted:
            continue
        if mapped not in unread and not (mapped is None and unread):
            where = "no cell" if mapped is None else f"cell {mapped}, which does not have it"
            detail = f"is mapped to {where}, no request for it waits and it is not deleted"
            yield Finding(MISSING_INSTANCE, f"instance {uuid}", detail)
    for uuid, held in api.claims.items():
        if held.consumer.consumer_type != INSTANCE or uuid in consumers or uuid in api.waiting:
            continue
        if uuid in api.deleted:
            continue
        if uuid in found:
            detail = f"was freed when its instance was shelved, but holds {held.allocations}"
            yield Finding(LEAKED_CLAIM, f"consumer {uuid}", detail)
            continue
        mapped = api.mappings.get(uuid)
        if mapped in unread or (mapped is None and unread):
            continue
        where = "no cell" if mapped is None else f"neither cell {mapped}, where it is mapped, nor another"
        detail = f"{where} has it and no request for it waits, but it holds {held.allocations}"
        yield Finding(LEAKED_CLAIM, f"instance {uuid}", detail)
    yield from _judge_moves(api, cells)


def _judge_claim(api: ApiState, cell: CellState, instance: Instance) -> Iterator[Finding]:
    held = api.claims.get(instance.consumer)
    subject = f"instance {instance.uuid}"
    given_up = instance.host is None and instance.uuid in api.waiting
    if instance.state == ERROR and held is not None and not given_up:
        yield Finding(LEAKED_CLAIM, subject, f"is in error, but holds {held.allocations}")
    if instance.state == SHELVED and held is not None:
        yield Finding(LEAKED_CLAIM, subject, f"is shelved, but holds {held.allocations}")
    if instance.state not in CLAIMED:
        return
    node = instance.node
    if instance.move is not None:
        move = cell.moves.get(instance.move)
        if move is None or move.target is None or move.state not in HOLDS_TARGET:
            # A conductor may be about to exchange the claims.
            return
        if (move.side, move.state) == (ARRIVING, RESUMING):
            # The instance may be in the source's cell already, and hold what it held there.
            return
        node = move.target.node
    place = f"is {instance.state} on host {instance.host} (node {instance.node})"
    nodes = cell.nodes.get(instance.host or "")
    if nodes and instance.node not in nodes:
        yield Finding(WRONG_HOST, subject, f"{place}, but that host's node is {' or '.join(sorted(nodes))}")
    if held is None:
        yield Finding(MISSING_CLAIM, subject, f"{place}, but holds nothing")
        return
    elsewhere = sorted(
        provider
        for provider in held.allocations
        if api.roots.get(provider) != node and provider not in api.sharing
    )
    if elsewhere:
        yield Finding(WRONG_HOST, subject, f"{place}, but holds from {', '.join(elsewhere)} of another tree")


def _judge_moves(api: ApiState, cells: Mapping[str, CellState]) -> Iterator[Finding]:
    """Judge the claims of moves.

    A move has its row before its claim, and long after its end. So a migration that no cell has is not ours.
    """
    moves = {
        uuid: move for cell in cells.values() for uuid, move in cell.moves.items() if move.side != ARRIVING
    }
    for uuid, move in moves.items():
        held = api.claims.get(uuid)
        if move.state in ENDED and move.state != DELETED and held is not None:
            yield Finding(LEAKED_CLAIM, f"move {uuid}", f"is {move.state}, but holds {held.allocations}")
        if move.state not in HOLDS_TARGET:
            continue
        what = f"of instance {move.instance} is {move.state}"
        if held is None:
            yield Finding(MISSING_CLAIM, f"move {uuid}", f"{what}, but holds nothing on {move.source.host}")
            continue
        elsewhere = [
            provider
            for provider in sorted(held.allocations)
            if api.roots.get(provider) != move.source.node and provider not in api.sharing
        ]
        if elsewhere:
            detail = f"{what}, but holds from {', '.join(elsewhere)}, which is not of {move.source.host}"
            yield Finding(WRONG_HOST, f"move {uuid}", detail)


def _judge_mapping(
    api: ApiState, cell: str, instance: Instance, other: str | None = None
) -> Iterator[Finding]:
    """Judge the mapping of an instance in a cell. ``other``: the cell that it goes to, or comes from."""
    subject = f"instance {instance.uuid}"
    mapped = api.mappings.get(instance.uuid)
    if mapped is None:
        if instance.state in _MAPPED and instance.uuid not in api.waiting:
            detail = f"is {instance.state} in cell {cell}, but has no mapping and no request for it waits"
            yield Finding(UNMAPPED_INSTANCE, subject, detail)
    elif mapped not in (cell, other):
        yield Finding(WRONG_CELL, subject, f"is {instance.state} in cell {cell}, but mapped to {mapped}")
