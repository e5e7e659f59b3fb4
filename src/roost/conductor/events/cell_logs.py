"""Maintains the logs of state changes in the cells' databases: numbers new changes, removes old ones."""

from collections.abc import Callable, Collection

from roost.conductor.time_limits import DAY
from roost.process.context import Context
from roost.scheduler.selection.claim_result import one_line
from roost.state.cell_database.state_changes import (
    NUMBERED_AT_ONCE,
    PRUNED_AT_ONCE,
    has_unnumbered,
    number_new_changes,
    prune_changes,
)
from roost.storage import StorageError

EVERY_SECONDS = 1.0
"""Seconds between two looks for changes without a position."""

SECONDS_OF_A_CELL = 0.01
"""Seconds of pause between two looks for each cell at least."""

PRUNE_SECONDS = 3600.0
"""Seconds between two removals of old changes."""


async def keep_cell_logs(context: Context, cells: Callable[[], Collection[str]], days: float) -> None:
    """Number and prune the logs of all cells, for ever; changes are kept for ``days``.

    ``cells``: returns the names of the cells that answer, as far as is known. Several processes may do this.
    """
    pruned = float("-inf")
    while True:
        names = cells()
        await number_changes(context, names)
        now = context.monotonic()
        if now - pruned >= PRUNE_SECONDS:
            pruned = now
            older = context.clock() - days * DAY
            await context.together([_prune(context, name, older) for name in names])
        await context.sleep(max(EVERY_SECONDS, SECONDS_OF_A_CELL * len(names)))


async def number_changes(context: Context, cells: Collection[str]) -> None:
    """Give positions to the changes that have none, as far as their cells answer."""
    await context.together([_number(context, name) for name in cells])


async def _number(context: Context, cell: str) -> None:
    database = f"cell/{cell}"
    try:
        while await context.read(database, has_unnumbered()):
            if await context.write(database, number_new_changes()) < NUMBERED_AT_ONCE:
                return
    except StorageError as error:
        values = {"cell": cell, "error": one_line(error)}
        context.log("a cell's events are told later", values, "debug")


async def _prune(context: Context, cell: str, older: float) -> None:
    try:
        while await context.write(f"cell/{cell}", prune_changes(older)) == PRUNED_AT_ONCE:
            pass
    except StorageError as error:
        values = {"cell": cell, "error": one_line(error)}
        context.log("a cell's events are pruned later", values, "warning")
