"""Errors of benchmarks.

BenchError
├── PeerMissing      OpenStack Placement is not installed by `roost bench peer-setup`
├── ServerMissing    a database server is not installed
└── DidNotStart      a process ended or did not answer in time
"""

from roost.model.errors import OperatorError


class BenchError(OperatorError):
    """A benchmark cannot run or cannot continue."""


class PeerMissing(BenchError):
    """OpenStack Placement is not installed in the bench directory, or its installation failed."""


class ServerMissing(BenchError):
    """A database server is not installed on this machine."""


class DidNotStart(BenchError):
    """A started process ended or did not answer in time."""
