"""Goals of benchmarks: a threshold with its calibration, the runs from which it can be judged.

Each benchmark declares its goals beside its workload. Reports tell whether their rows reach them,
`tests/bench` reads those that do not depend on the machine, and the table in ``docs/benchmarks.md`` is made
from all of them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

MACHINES: Final = {
    "A": "2 cores (Intel Xeon), 24 GiB, Linux 6.18, Python 3.11.7, numpy 2.4.6, SQLite 3.40 with "
    "`synchronous=FULL`, PostgreSQL with all syncs; nothing else runs",
    "B": "the same machine, with other work on both cores: only ratios count",
}
"""Machines of calibrations, by the letter that a table shows."""


class Calibration(msgspec.Struct, frozen=True):
    """Measured values of a goal.

    ``runs``: the value of each run, as of November 2026. ``database``: the kind of database; empty: none.
    """

    runs: tuple[float, ...]
    database: str = ""
    machine: str = "A"

    @property
    def mean(self) -> float:
        """The mean of all runs."""
        return sum(self.runs) / len(self.runs)

    @property
    def spread(self) -> str:
        """The least and the greatest run as text."""
        least, greatest = figure_text(min(self.runs)), figure_text(max(self.runs))
        return "one run" if len(self.runs) == 1 else f"{least} to {greatest}"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold for one figure of a workload.

    ``of``: settings and fields of the row that it is a goal of; ``field``: the path of the figure in this
    row; empty if no report has it. ``unit``: of the figure. Exactly one of ``at_least`` and ``at_most`` is
    set.
    """

    workload: str
    unit: str
    calibrations: tuple[Calibration, ...]
    at_least: float | None = None
    at_most: float | None = None
    of: Mapping[str, Any] = {}
    field: str = ""

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row, with the settings of its report, is that of this goal."""
        return bool(self.field) and all(row.get(name) == value for name, value in self.of.items())

    def is_reached(self, value: float) -> bool:
        """Return whether a measured value reaches the goal."""
        if self.at_least is not None:
            return value >= self.at_least
        assert self.at_most is not None
        return value <= self.at_most

    def verdict(self, value: float) -> str:
        """Return a sentence on a measured value."""
        reached = "reached" if self.is_reached(value) else "not reached"
        return f"Goal of {self.workload}: {self.threshold}: {reached} with {figure_text(value)}."

    @property
    def threshold(self) -> str:
        """The threshold as text, with its unit."""
        word, value = ("at least", self.at_least) if self.at_least is not None else ("at most", self.at_most)
        assert value is not None
        return f"{word} {figure_text(value)} {self.unit}"

    def lines(self) -> list[list[str]]:
        """Return a line of the table of goals for each calibration; `GOAL_TITLES` has their titles."""
        return [
            [
                self.workload,
                each.database or "–",
                self.threshold,
                figure_text(each.mean),
                each.spread,
                each.machine,
                self._reached_in(each.runs),
            ]
            for each in self.calibrations
        ]

    def _reached_in(self, runs: tuple[float, ...]) -> str:
        count = sum(map(self.is_reached, runs))
        if count in (0, len(runs)):
            return "yes" if count else "no"
        return f"in {count} of {len(runs)} runs"


GOAL_TITLES: Final = ("workload", "database", "goal", "mean", "spread", "machine", "reached")


def figure_text(value: float) -> str:
    """Return a figure with three digits, or all digits before the decimal point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
