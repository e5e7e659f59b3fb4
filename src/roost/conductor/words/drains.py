"""The events of drains: a disabled cell, host or node begins to be emptied, and is empty.

A drain belongs to a word: the row of the word has the state of the drain and the version of the word. So each
event is written once, even if several processes see it, and a later word begins a new drain. A drain has
ended when no instance is left and none can come any more: requests that were accepted before the word are in
their cells, and no instance that failed before it is on its way to another host.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from roost.process.context import Context
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.drains import Drain, note_drains, read_open_drains
from roost.state.api_database.tables import API
from roost.state.cell_database.instance_search import Remaining, count_remaining
from roost.storage import StorageError

EVERY_SECONDS = 5.0
"""Seconds between two looks at the drains that have not ended."""


async def watch_drains(context: Context, cells: Callable[[], Collection[str]]) -> None:
    """Look at the drains of the cells that answer, for ever. Several processes may."""
    while True:
        try:
            await look_at_drains(context, cells())
        except StorageError as error:
            context.log("drains are looked at later", {"error": one_line(error)}, "debug")
        await context.sleep(EVERY_SECONDS)


async def look_at_drains(context: Context, cells: Collection[str]) -> None:
    """Write the events of drains that have begun or ended since the last look.

    Raises: `StorageError` of the API database.
    """
    # Requests that are on their way before this read are in their cells at the next reads.
    open_ = await context.read(API, read_open_drains())
    by_cell: dict[str, list[Drain]] = {}
    for drain in open_:
        if drain.subject.cell in cells:
            by_cell.setdefault(drain.subject.cell, []).append(drain)
    found = await context.together([_remaining(context, cell, drains) for cell, drains in by_cell.items()])
    seen = [
        (drain, left)
        for drains, remaining in zip(by_cell.values(), found, strict=True)
        if remaining is not None
        for drain in drains
        if (left := _left(drain, remaining)) is not None
    ]
    if seen:
        await context.write(API, note_drains(tuple(seen), context.clock()))


def _left(drain: Drain, remaining: Remaining) -> int | None:
    """Return the number of instances that a drain has left; None if there is no event to write."""
    if left := remaining.instances.get(drain.subject, 0):
        return None if drain.begun else left
    moving = remaining.moving_since is not None and remaining.moving_since <= drain.at
    return None if drain.awaited or moving else 0


async def _remaining(context: Context, cell: str, drains: Sequence[Drain]) -> Remaining | None:
    subjects = tuple(drain.subject for drain in drains)
    try:
        return await context.read(f"cell/{cell}", count_remaining(subjects))
    except StorageError as error:
        values: Mapping[str, object] = {"cell": cell, "error": one_line(error)}
        context.log("drains of a cell are looked at later", values, "debug")
        return None
