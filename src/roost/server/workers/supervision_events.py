"""The events that a supervision takes, and the effects that it returns for its parent process to perform."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Ready:
    """A worker can serve."""

    worker: int


@dataclass(frozen=True)
class WorkerFailed:
    """A worker cannot start, for a reason in one line, and is about to end."""

    worker: int
    reason: str


@dataclass(frozen=True)
class Ended:
    """A worker's process has ended. ``how``: its exit status or signal, as text for the log."""

    worker: int
    how: str


@dataclass(frozen=True)
class NotStarted:
    """The operating system could not start a worker's process. ``how``: its error, as text for the log."""

    worker: int
    how: str


@dataclass(frozen=True)
class Measured:
    """The resident memory of a worker, in bytes."""

    worker: int
    memory: int


@dataclass(frozen=True)
class Heard:
    """The number of beats of each worker so far. A turning event loop raises the number of its worker."""

    beats: Mapping[int, int]


@dataclass(frozen=True)
class Reload:
    """A new configuration has been read. Workers that start from now on have it."""


@dataclass(frozen=True)
class Stop:
    """The service has to end."""


@dataclass(frozen=True)
class Tick:
    """Time has passed. The first tick starts the workers."""


Event = Ready | WorkerFailed | Ended | NotStarted | Measured | Heard | Reload | Stop | Tick


Cause = Literal["start", "ended", "hung", "reload", "memory"]
"""The reason to start a worker: the service starts, or its predecessor ended, hung or is to be replaced."""


@dataclass(frozen=True)
class StartWorker:
    """Start a worker. ``generation``: the configuration that it gets, as the number of reloads before it."""

    worker: int
    slot: int
    generation: int
    cause: Cause


@dataclass(frozen=True)
class Retire:
    """Have a replaced worker end, after it has told its clients to reconnect."""

    worker: int


@dataclass(frozen=True)
class Terminate:
    """Have a worker end that nothing replaces."""

    worker: int


@dataclass(frozen=True)
class Kill:
    """Kill a worker that did not start, or did not end, in time."""

    worker: int
    late: Literal["start", "end"]


@dataclass(frozen=True)
class ServiceStarted:
    """Report that all slots serve for the first time."""


@dataclass(frozen=True)
class Reloaded:
    """Report that all workers have the configuration of this generation."""

    generation: int


@dataclass(frozen=True)
class ReloadAbandoned:
    """Report that no worker could start with the new configuration. All keep the previous one."""

    reason: str


@dataclass(frozen=True)
class Lost:
    """Report that a worker has ended unexpectedly. ``pause``: seconds until the slot starts another one."""

    worker: int
    how: str
    pause: float
    reason: str | None


@dataclass(frozen=True)
class OverLimit:
    """A worker uses more memory than the limit and is replaced."""

    worker: int
    memory: int


@dataclass(frozen=True)
class Hung:
    """Kill a worker whose event loop has not turned for ``seconds``. The slot starts another one."""

    worker: int
    seconds: float


@dataclass(frozen=True)
class Finished:
    """No worker is left and none will be started. ``reason``: the reason if the service could not start."""

    reason: str | None


Effect = (
    StartWorker
    | Retire
    | Terminate
    | Kill
    | ServiceStarted
    | Reloaded
    | ReloadAbandoned
    | Lost
    | OverLimit
    | Hung
    | Finished
)
