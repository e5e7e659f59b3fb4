"""The errors of a replay.

ReplayError
├── PlotUnavailable  matplotlib, which draws plots, cannot be imported
└── TraceError       a trace cannot be read, or a line of it is invalid
"""

from pathlib import Path

from roost.model.errors import OperatorError


class ReplayError(OperatorError):
    """The base of all errors of a replay."""


class PlotUnavailable(ReplayError):
    """Plots cannot be drawn, because matplotlib is not installed."""


class TraceError(ReplayError):
    """A trace cannot be read, or a line of it is invalid.

    The message is one line: the file, the line number from 1, the problem, and the value.
    """

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        where = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem
