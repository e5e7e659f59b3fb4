"""What can go wrong in a replay.

ReplayError
├── PlotUnavailable  matplotlib, which draws plots, cannot be imported
└── TraceError       a trace cannot be read, or a line of it says something that cannot be
"""

from pathlib import Path

from roost.model.errors import OperatorError


class ReplayError(OperatorError):
    """Any failure of a replay."""


class PlotUnavailable(ReplayError):
    """Plots cannot be drawn, because matplotlib is not installed."""


class TraceError(ReplayError):
    """A trace is not what it should be. The message is one line: file, line number from 1, problem, value."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        where = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem
