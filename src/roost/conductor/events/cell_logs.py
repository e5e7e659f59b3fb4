"""Maintains the logs of state changes in the cells' databases: numbers new changes, removes old ones."""

from collections.abc import Callable, Collection

from roost.conductor.time_limits import DAY
from roost.machine import Clock, Log, Machine, Monotonic, Read, Sleep, Together, Write
from roost.scheduler.selection.claim_result import one_line
from roost.state.cell_database.state_changes import (
    NUMBERED_AT_ONCE,
    PRUNED_AT_ONCE,
    HasUnnumbered,
    NumberChanges,
    PruneChanges,
)
from roost.storage import StorageError

EVERY_SECONDS = 1.0
"""Seconds between two looks for changes without a position."""

SECONDS_OF_A_CELL = 0.01
"""Seconds of pause between two looks for each cell at least."""

PRUNE_SECONDS = 3600.0
"""Seconds between two removals of old changes."""


def keep_cell_logs(cells: Callable[[], Collection[str]], days: float) -> Machine[None]:
    """Number and prune the logs of all cells, for ever; changes are kept for ``days``.

    ``cells``: returns the names of the cells that answer, as far as is known. Several processes may do this.
    """
    pruned = float("-inf")
    while True:
        names = cells()
        yield from number_changes(names)
        now = yield from Monotonic().do()
        if now - pruned >= PRUNE_SECONDS:
            pruned = now
            older = (yield from Clock().do()) - days * DAY
            yield from Together([_prune(name, older) for name in names]).do()
        yield from Sleep(max(EVERY_SECONDS, SECONDS_OF_A_CELL * len(names))).do()


def number_changes(cells: Collection[str]) -> Machine[None]:
    """Give positions to the changes that have none, as far as their cells answer."""
    yield from Together([_number(name) for name in cells]).do()


def _number(cell: str) -> Machine[None]:
    database = f"cell/{cell}"
    try:
        while (yield from Read(database, HasUnnumbered()).do()):
            if (yield from Write(database, NumberChanges()).do()) < NUMBERED_AT_ONCE:
                return
    except StorageError as error:
        values = {"cell": cell, "error": one_line(error)}
        yield from Log("a cell's events are told later", values, "debug").do()


def _prune(cell: str, older: float) -> Machine[None]:
    try:
        while (yield from Write(f"cell/{cell}", PruneChanges(older)).do()) == PRUNED_AT_ONCE:
            pass
    except StorageError as error:
        values = {"cell": cell, "error": one_line(error)}
        yield from Log("a cell's events are pruned later", values, "warning").do()
