"""Errors of benchmarks and replays.

OperatorError
├── BenchError           a benchmark cannot run
│   ├── PeerMissing      OpenStack Placement is not installed by `roost bench peer-setup`
│   ├── ServerMissing    a database server is not installed
│   └── DidNotStart      a process ended or did not answer in time
└── ReplayError          a replay cannot run
    ├── PlotUnavailable  matplotlib, which draws plots, cannot be imported
    └── TraceError       a trace cannot be read, or a line of it is invalid
"""

from pathlib import Path

from roost.model.errors import OperatorError


class BenchError(OperatorError):
    """A benchmark cannot run or cannot continue."""


class PeerMissing(BenchError):
    """OpenStack Placement is not installed in the bench directory, or its installation failed."""


class ServerMissing(BenchError):
    """A database server is not installed on this machine."""


class DidNotStart(BenchError):
    """A started process ended or did not answer in time."""


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
