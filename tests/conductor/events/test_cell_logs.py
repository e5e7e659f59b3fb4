"""The logs of the cells are numbered and pruned by machines, and a cell that is away holds up no other."""

from typing import Any

from roost.conductor.events.cell_logs import PRUNE_SECONDS, keep_cell_logs, number_changes
from roost.machine import Clock, Log, Monotonic, Read, Sleep, Together, Write
from roost.state.cell_database.state_changes import (
    NUMBERED_AT_ONCE,
    PRUNED_AT_ONCE,
    HasUnnumbered,
    NumberChanges,
    PruneChanges,
)
from roost.storage import DatabaseUnavailable


class Cells:
    """Cells with numbers of changes that have no position, and of old ones; None: the cell is away."""

    def __init__(self, **new: int | None) -> None:
        self.new = new
        self.old = dict.fromkeys(new, 2 * PRUNED_AT_ONCE + 1)
        self.written: list[tuple[str, str]] = []
        self.now = 0.0
        self.sleeps: list[float] = []
        self.logged: list[str] = []

    def perform(self, machine: Any, sleeps: int = 0) -> None:
        """Perform a machine to its end, or until it has slept so often."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = machine.send(answer) if error is None else machine.throw(error)
            except StopIteration:
                return
            answer, error = None, None
            try:
                answer = self._answer(step)
            except DatabaseUnavailable as raised:
                error = raised
            if sleeps and len(self.sleeps) == sleeps:
                return

    def _answer(self, step: Any) -> Any:
        if isinstance(step, Together):
            for each in step.machines:
                self.perform(each)
            return [None] * len(step.machines)
        if isinstance(step, Sleep):
            self.sleeps.append(step.seconds)
            self.now += step.seconds
        elif isinstance(step, Clock | Monotonic):
            return self.now
        elif isinstance(step, Log):
            self.logged.append(step.event)
        elif isinstance(step, Read | Write):
            return self._of_cell(step.database.removeprefix("cell/"), step.work)
        return None

    def _of_cell(self, cell: str, work: Any) -> Any:
        new = self.new[cell]
        if new is None:
            raise DatabaseUnavailable("away")
        if isinstance(work, HasUnnumbered):
            return new > 0
        self.written.append((cell, type(work).__name__))
        if isinstance(work, NumberChanges):
            done = min(new, NUMBERED_AT_ONCE)
            self.new[cell] = new - done
            return done
        assert isinstance(work, PruneChanges)
        done = min(self.old[cell], PRUNED_AT_ONCE)
        self.old[cell] -= done
        return done


def test_all_that_is_new_is_numbered_and_what_is_not_writes_nothing() -> None:
    cells = Cells(quiet=0, away=None, busy=2 * NUMBERED_AT_ONCE + 1)
    cells.perform(number_changes(list(cells.new)))
    assert cells.new == {"quiet": 0, "away": None, "busy": 0}
    assert cells.written == [("busy", "NumberChanges")] * 3
    assert cells.logged == ["a cell's events are told later"]


def test_old_changes_are_pruned_once_an_hour() -> None:
    cells = Cells(one=0)
    cells.perform(keep_cell_logs(lambda: list(cells.new), 30.0), sleeps=10)
    assert (cells.old, len(cells.written)) == ({"one": 0}, 3)
    assert cells.sleeps == [1.0] * 10
    cells = Cells(one=0)
    cells.perform(keep_cell_logs(lambda: list(cells.new), 30.0), sleeps=int(PRUNE_SECONDS) + 2)
    assert len(cells.written) == 4, "and again"


def test_many_cells_are_looked_at_less_often() -> None:
    cells = Cells(**dict.fromkeys((f"c{number}" for number in range(500)), 0))
    cells.perform(keep_cell_logs(lambda: list(cells.new), 30.0), sleeps=1)
    assert cells.sleeps == [5.0]
