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
from roost.conductor.possible_cells import possible_cells
from roost.machine import Clock, Log, Machine, Monotonic, Read, Record, Together, Write
from roost.model.history import Requester
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.build_requests import Unfinished
from roost.state.api_database.mappings import (
    DeleteMapped,
    ForgetInstances,
    FreeDeletions,
    InstanceMapping,
    TakeDeletions,
)
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import PresentInstances
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
    ``destroyed``: a cell had the instance, and has it no more.
    """

    mapping: InstanceMapping
    cells: set[str]
    here: set[str]
    destroyed: bool = False


class Deletions:
    """The deletions that this process carries out."""

    def __init__(self) -> None:
        self.by_uuid: dict[str, Deletion] = {}

    def add(self, mappings: Collection[InstanceMapping]) -> Machine[None]:
        """Begin to carry deletions that are not carried yet. Raises `StorageError`; then none is begun."""
        new = [mapping for mapping in mappings if mapping.instance_uuid not in self.by_uuid]
        cells = yield from possible_cells(new)
        for mapping in new:
            uuid = mapping.instance_uuid
            self.by_uuid.setdefault(uuid, Deletion(mapping, {*cells[uuid]}, set()))

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


def accept_deletion(
    uuids: Sequence[str], tenure: Tenure, deletions: Deletions, by: Requester | None = None
) -> Machine[dict[str, InstanceMapping]]:
    """Accept the deletion of instances: durable when this returns. Returns the mappings of known instances.

    Their cells are told too, as far as they answer. ``by``: the requester.

    Raises: `StorageError` of the API database.
    """
    holds = tenure.holds((yield from Monotonic().do()))
    at = yield from Clock().do()
    owner = tenure.holder if holds else None
    known = yield from Write(API, DeleteMapped(tuple(uuids), at, owner, by)).do()
    if holds and known:
        yield from deletions.add(known.values())
        yield from tell_cells(deletions, known)
    return known


def tell_cells(deletions: Deletions, only: Iterable[str] | None = None) -> Machine[None]:
    """Tell cells of deletions, or only those of the uuids ``only``. A cell that is down is told later."""
    wanted = None if only is None else set(only)
    telling = []
    for cell, waiting in deletions.untold().items():
        some = [each for each in waiting if wanted is None or each.mapping.instance_uuid in wanted]
        if some:
            telling.append(_tell(cell, some))
    yield from Together(telling).do()


def _tell(cell: str, waiting: Sequence[Deletion]) -> Machine[None]:
    at = yield from Clock().do()
    for some in _batches(waiting):
        uuids = tuple(each.mapping.instance_uuid for each in some)
        try:
            deleted = yield from Write(f"cell/{cell}", DeleteInstances(uuids, at, cell)).do()
        except StorageError as error:
            return (yield from _later(cell, error))
        if deleted.ended:
            yield from Record((), deleted.ended).do()
        for each in some:
            each.cells.discard(cell)
            if each.mapping.instance_uuid in deleted.here:
                each.here.add(cell)
    return None


def carry_deletions(deletions: Deletions) -> Machine[None]:
    """Take the deletions of this process one step on. A step that fails is tried again at the next call."""
    yield from tell_cells(deletions)
    yield from Together([_look(cell, each) for cell, each in deletions.in_cells().items()]).do()
    gone = deletions.in_no_cell()
    if not gone:
        return
    try:
        requests = tuple({each.mapping.request_id for each in gone})
        unfinished = yield from Read(API, Unfinished(requests)).do()
        ended = [each for each in gone if each.mapping.request_id not in unfinished]
        for some in _batches(ended):
            uuids = yield from _freed(some)
            yield from Write(API, ForgetInstances(uuids, (yield from Clock().do()))).do()
            deletions.forget(uuids)
    except Exception as error:
        # Placement over HTTP fails with the errors of its transport too.
        yield from Log("deletions are ended later", {"error": one_line(error)}, "warning").do()


def _freed(ended: Sequence[Deletion]) -> Machine[tuple[str, ...]]:
    """Free the claims of instances; returns those that hold nothing now. Raises the errors of an outage.

    The cell has freed the claims of the instances that it had. A claim that placement refuses to free holds
    up the deletion of its own instance alone.
    """
    holding = [each.mapping.instance_uuid for each in ended if not each.destroyed]
    outcome = yield from free_claims(holding)
    for uuid, error in outcome.refused.items():
        values = {"instance": uuid, "error": one_line(error)}
        yield from Log("a claim cannot be freed", values, "warning").do()
    uuids = (each.mapping.instance_uuid for each in ended)
    return tuple(uuid for uuid in uuids if uuid not in outcome.refused)


def _look(cell: str, waiting: Sequence[Deletion]) -> Machine[None]:
    """Read which instances the cell has destroyed."""
    uuids = tuple(each.mapping.instance_uuid for each in waiting)
    try:
        there = yield from Read(f"cell/{cell}", PresentInstances(uuids)).do()
    except StorageError as error:
        return (yield from _later(cell, error))
    for each in waiting:
        if each.mapping.instance_uuid not in there:
            each.here.discard(cell)
            each.destroyed = True
    return None


def _later(cell: str, error: Exception) -> Machine[None]:
    values = {"cell": cell, "error": one_line(error)}
    yield from Log("a cell cannot be asked of deletions", values, "debug").do()


def take_deletions(tenure: Tenure, deletions: Deletions) -> Machine[None]:
    """Take over the deletions without an owner. Raises: `StorageError`."""
    while True:
        # Those that are carried are among the ones that are found.
        most = AT_ONCE + len(deletions.by_uuid)
        free = yield from Read(API, FreeDeletions(tenure.holder, most)).do()
        new = tuple(each for each in free if each[0] not in deletions.by_uuid)[:AT_ONCE]
        taken = (yield from Write(API, TakeDeletions(new, tenure.holder)).do()) if new else []
        yield from deletions.add(taken)
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
