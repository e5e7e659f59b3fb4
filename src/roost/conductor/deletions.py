"""Deletions: accepted in the API database, marked in the cell, ended when nothing of the instance is left.

An answered deletion is durable. The cell is told at once if it can be reached, and later if not. From then on
nothing brings the instance back: its fence in the cell refuses every insert, and the owner of its request
places no instance whose deletion is accepted. The cell destroys an instance that it has, and frees its claim.
An instance that never arrived may hold a claim: it is freed when the request is finished, since no conductor
claims for it after that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from roost.conductor.claim_release import free_claims
from roost.conductor.context import PlacementContext
from roost.model.instance import Requester
from roost.process.context import Context
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.consumers import find_consumers
from roost.state.api_database.crossings import crossings_of
from roost.state.api_database.mappings import (
    ANYWHERE,
    DeleteMapped,
    InstanceMapping,
    find_free_deletions,
    forget_instances,
    take_over_deletions,
)
from roost.state.api_database.request_reads import find_unfinished
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import find_present
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.leases import Tenure
from roost.storage import StorageError

AT_ONCE = 500
"""Deletions that one transaction takes a step on at most. All deletions that gather during an outage would
exceed the time limit of a write, at every retry."""

T = TypeVar("T")


class Deletion(msgspec.Struct):
    """A deletion under way.

    ``cells`` are still to be told of it. ``here``: cells that were told, and still have the instance.
    ``destroyed``: a cell had the instance, and has it no more. ``moves``: to other cells that were under way:
    no cell frees what instance and move hold, as the other one may still have a guest.
    """

    mapping: InstanceMapping
    cells: set[str]
    here: set[str]
    destroyed: bool = False
    moves: tuple[str, ...] = ()


class Deletions:
    """The deletions that this process carries out."""

    def __init__(self) -> None:
        self.by_uuid: dict[str, Deletion] = {}

    async def add(self, context: PlacementContext, mappings: Collection[InstanceMapping]) -> None:
        """Begin to carry deletions that are not carried yet. Raises `StorageError`; then none is begun."""
        new = [mapping for mapping in mappings if mapping.instance_uuid not in self.by_uuid]
        cells = await possible_cells(context, new)
        uuids = tuple(mapping.instance_uuid for mapping in new)
        crossing = await context.read(API, crossings_of(uuids)) if uuids else []
        for mapping in new:
            uuid = mapping.instance_uuid
            its = [each for each in crossing if each.instance == uuid]
            both = {cell for each in its for cell in (each.source, each.target)}
            moves = tuple(each.move for each in its)
            self.by_uuid.setdefault(uuid, Deletion(mapping, {*cells[uuid]} | both, set(), moves=moves))

    def untold(self) -> dict[str, list[Deletion]]:
        """Return by cell the deletions of which it is still to be told."""
        return _by_cell((cell, each) for each in self.by_uuid.values() for cell in each.cells)

    def in_cells(self) -> dict[str, list[Deletion]]:
        """Return by cell the deletions of instances that it has to destroy."""
        return _by_cell((cell, each) for each in self.by_uuid.values() for cell in each.here)

    def in_no_cell(self) -> list[Deletion]:
        """Return the deletions of instances that are in no cell and cannot arrive in one."""
        return [each for each in self.by_uuid.values() if not each.cells and not each.here]

    def forget(self, ended: Iterable[str]) -> None:
        """Drop deletions that have ended."""
        for uuid in ended:
            self.by_uuid.pop(uuid, None)


async def accept_deletion(
    context: PlacementContext,
    uuids: Sequence[str],
    tenure: Tenure,
    deletions: Deletions,
    by: Requester | None = None,
) -> dict[str, InstanceMapping]:
    """Accept the deletion of instances: durable when this returns. Returns the mappings of known instances.

    Their cells are told too, as far as they answer. ``by``: the requester.

    Raises: `StorageError` of the API database.
    """
    holds = tenure.holds(context.monotonic())
    at = context.clock()
    owner = tenure.holder if holds else None
    known = await context.write(API, DeleteMapped(tuple(uuids), at, owner, by))
    if holds and known:
        await deletions.add(context, known.values())
        await tell_cells(context, deletions, known)
    return known


async def tell_cells(
    context: PlacementContext, deletions: Deletions, only: Iterable[str] | None = None
) -> None:
    """Tell cells of deletions, or only those of the uuids ``only``. A cell that is down is told later."""
    wanted = None if only is None else set(only)
    telling = []
    for cell, waiting in deletions.untold().items():
        some = [each for each in waiting if wanted is None or each.mapping.instance_uuid in wanted]
        if some:
            telling.append(_tell(context, cell, some))
    await context.together(telling)


async def _tell(context: PlacementContext, cell: str, waiting: Sequence[Deletion]) -> None:
    at = context.clock()
    for some in _batches(waiting):
        uuids = tuple(each.mapping.instance_uuid for each in some)
        try:
            deleted = await context.write(f"cell/{cell}", DeleteInstances(uuids, at, cell))
        except StorageError as error:
            _later(context, cell, error)
            return
        if deleted.ended:
            context.record((), deleted.ended)
        for each in some:
            each.cells.discard(cell)
            if each.mapping.instance_uuid in deleted.here:
                each.here.add(cell)
    return


async def carry_deletions(context: PlacementContext, deletions: Deletions) -> None:
    """Take the deletions of this process one step on. A step that fails is tried again at the next call."""
    await tell_cells(context, deletions)
    await context.together([_look(context, cell, each) for cell, each in deletions.in_cells().items()])
    gone = deletions.in_no_cell()
    if not gone:
        return
    try:
        requests = tuple({each.mapping.request_id for each in gone})
        unfinished = await context.read(API, find_unfinished(requests))
        ended = [each for each in gone if each.mapping.request_id not in unfinished]
        for some in _batches(ended):
            uuids = await _freed(context, some)
            await context.write(API, forget_instances(uuids, context.clock()))
            deletions.forget(uuids)
    except Exception as error:
        # Placement over HTTP fails with the errors of its transport too.
        context.log("deletions are ended later", {"error": one_line(error)}, "warning")


async def possible_cells(
    context: Context, mappings: Collection[InstanceMapping]
) -> dict[str, tuple[str, ...]]:
    """Return by uuid the cells that each instance may be in, or on its way to. Raises `StorageError`.

    An instance that may be anywhere may be in each cell that is mapped now, also in a cell that this process
    has not opened: work that needs all cells waits for that one.
    """
    anywhere: tuple[str, ...] = ()
    if any(mapping.cell is None and mapping.epoch == ANYWHERE for mapping in mappings):
        anywhere = tuple(await context.read(API, mapped_cells))
    found: dict[str, tuple[str, ...]] = {}
    for mapping in mappings:
        if mapping.cell is not None:
            found[mapping.instance_uuid] = (mapping.cell,)
        else:
            found[mapping.instance_uuid] = anywhere if mapping.epoch == ANYWHERE else ()
    return found


async def _freed(context: PlacementContext, ended: Sequence[Deletion]) -> tuple[str, ...]:
    """Free the claims of instances; returns those that hold nothing now. Raises the errors of an outage.

    The cell has freed the claims of the instances that it had; consumers that were drawn to unshelve one are
    freed once more. A claim that placement refuses to free holds
    up the deletion of its own instance alone.
    """
    holding = [each.mapping.instance_uuid for each in ended if not each.destroyed or each.moves]
    uuids = tuple(each.mapping.instance_uuid for each in ended)
    drawn = await context.read(API, find_consumers(uuids))
    consumers = [*holding, *drawn, *(move for each in ended for move in each.moves)]
    outcome = await free_claims(context, consumers)
    for uuid, error in outcome.refused.items():
        values = {"instance": uuid, "error": one_line(error)}
        context.log("a claim cannot be freed", values, "warning")
    refused = {drawn.get(each, each) for each in outcome.refused}
    return tuple(
        each.mapping.instance_uuid
        for each in ended
        if refused.isdisjoint((each.mapping.instance_uuid, *each.moves))
    )


async def _look(context: PlacementContext, cell: str, waiting: Sequence[Deletion]) -> None:
    """Read which instances the cell has destroyed."""
    uuids = tuple(each.mapping.instance_uuid for each in waiting)
    try:
        there = await context.read(f"cell/{cell}", find_present(uuids))
    except StorageError as error:
        _later(context, cell, error)
        return
    for each in waiting:
        if each.mapping.instance_uuid not in there:
            each.here.discard(cell)
            each.destroyed = True
    return


def _later(context: PlacementContext, cell: str, error: Exception) -> None:
    values = {"cell": cell, "error": one_line(error)}
    context.log("a cell cannot be asked of deletions", values, "debug")


async def take_deletions(context: PlacementContext, tenure: Tenure, deletions: Deletions) -> None:
    """Take over the deletions without an owner. Raises: `StorageError`."""
    while True:
        # Those that are carried are among the ones that are found.
        most = AT_ONCE + len(deletions.by_uuid)
        free = await context.read(API, find_free_deletions(tenure.holder, most))
        new = tuple(each for each in free if each[0] not in deletions.by_uuid)[:AT_ONCE]
        taken = await context.write(API, take_over_deletions(new, tenure.holder)) if new else []
        await deletions.add(context, taken)
        # A deletion without its mapping is not carried, and would be found for ever.
        if len(free) < most or not taken:
            return


def _batches(many: Sequence[T]) -> Iterator[Sequence[T]]:
    return (many[first : first + AT_ONCE] for first in range(0, len(many), AT_ONCE))


def _by_cell(pairs: Iterable[tuple[str, Deletion]]) -> dict[str, list[Deletion]]:
    found: defaultdict[str, list[Deletion]] = defaultdict(list)
    for cell, each in pairs:
        found[cell].append(each)
    return found
