"""The logs of the cells are numbered and pruned for ever, and a cell that is away holds up no other."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from roost.conductor.events.cell_logs import PRUNE_SECONDS, keep_cell_logs, number_changes
from roost.state.cell_database.state_changes import (
    NUMBERED_AT_ONCE,
    PRUNED_AT_ONCE,
    has_unnumbered,
    number_new_changes,
    prune_changes,
)
from roost.storage import DatabaseUnavailable
from support.stepped_contexts import SteppedContext
from support.works import is_of


class Cells(SteppedContext):
    """Cells with numbers of changes that have no position, and of old ones; None: the cell is away."""

    def __init__(self, **new: int | None) -> None:
        super().__init__()
        self.new = new
        self.old = dict.fromkeys(new, 2 * PRUNED_AT_ONCE + 1)
        self.written: list[tuple[str, str]] = []
        self.sleeps: list[float] = []

    def run(self, routine: Any, sleeps: int = 0) -> None:
        """Run a coroutine to its end, or until it has slept so often."""
        with suppress(StopIteration):
            while True:
                [seconds] = routine.send(None).arguments
                self.sleeps.append(seconds)
                self.now += seconds
                if sleeps and len(self.sleeps) == sleeps:
                    return

    async def together(self, routines: Sequence[Any]) -> list[Any]:
        return [await each for each in routines]

    async def read(self, database: str, work: Any) -> Any:
        return self._of_cell(database.removeprefix("cell/"), work)

    write = read

    def _of_cell(self, cell: str, work: Any) -> Any:
        new = self.new[cell]
        if new is None:
            raise DatabaseUnavailable("away")
        if is_of(work, has_unnumbered):
            return new > 0
        self.written.append((cell, work.name))
        if is_of(work, number_new_changes):
            done = min(new, NUMBERED_AT_ONCE)
            self.new[cell] = new - done
            return done
        assert is_of(work, prune_changes)
        done = min(self.old[cell], PRUNED_AT_ONCE)
        self.old[cell] -= done
        return done


def test_all_that_is_new_is_numbered_and_what_is_not_writes_nothing() -> None:
    cells = Cells(quiet=0, away=None, busy=2 * NUMBERED_AT_ONCE + 1)
    cells.run(number_changes(cells, list(cells.new)))
    assert cells.new == {"quiet": 0, "away": None, "busy": 0}
    assert cells.written == [("busy", "number_new_changes")] * 3
    assert cells.logged == ["a cell's events are told later"]


def test_old_changes_are_pruned_once_an_hour() -> None:
    cells = Cells(one=0)
    cells.run(keep_cell_logs(cells, lambda: list(cells.new), 30.0), sleeps=10)
    assert (cells.old, len(cells.written)) == ({"one": 0}, 3)
    assert cells.sleeps == [1.0] * 10
    cells = Cells(one=0)
    cells.run(keep_cell_logs(cells, lambda: list(cells.new), 30.0), sleeps=int(PRUNE_SECONDS) + 2)
    assert len(cells.written) == 4, "and again"


def test_many_cells_are_looked_at_less_often() -> None:
    cells = Cells(**dict.fromkeys((f"c{number}" for number in range(500)), 0))
    cells.run(keep_cell_logs(cells, lambda: list(cells.new), 30.0), sleeps=1)
    assert cells.sleeps == [5.0]
