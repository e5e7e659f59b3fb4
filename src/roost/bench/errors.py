"""What keeps a benchmark from running.

BenchError
├── PeerMissing      `roost bench peer-setup` was not run, or could not be
├── ServerMissing    a database server is not installed
└── DidNotStart      a process that was started does not answer
"""

from roost.model.errors import OperatorError


class BenchError(OperatorError):
    """A benchmark cannot run, or cannot go on."""


class PeerMissing(BenchError):
    """OpenStack Placement is not there to be measured against."""


class ServerMissing(BenchError):
    """A database server is not installed on this machine."""


class DidNotStart(BenchError):
    """A process did not answer in time, or ended."""
