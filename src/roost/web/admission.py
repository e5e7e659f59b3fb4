"""Admission: which requests a process serves, and which it refuses at once with 503.

Without a limit the requests that wait for a stopped database, or for their turn, would take memory without
bound, and each would be answered later than its client waits. A refusal costs little and is early.

Reads and writes have limits of their own, so that no number of reads refuses a claim.
"""

import enum
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from roost.process.metrics import catalogue as metrics
from roost.web.dispatch import Application, Message
from roost.web.errors import HeadTooLarge, TooSlow, Unavailable
from roost.web.heads import LARGEST_HEAD, is_head_too_large
from roost.web.limits import Limits
from roost.web.observation import Observation
from roost.web.operation import LARGEST_BODY
from roost.web.patient_sender import PatientSender

REFUSAL_KEY: Final = "roost.refusal"
"""The key of the ASGI scope under which the kernel finds the error of a request that is not admitted."""

_ARRIVAL_KEY: Final = "roost.arrival"

_READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))


class Cause(enum.Enum):
    """The limit that a refused request met. The value completes a sentence."""

    READS = "this process has as many reads in flight as it may"
    WRITES = "this process has as many writes in flight as it may"
    BODIES = "the bodies of the requests in flight take as much memory as they may"
    ANSWERS = "the answers that slow clients have not taken yet take as much memory as they may"
    QUERIES = "as many queries wait for their share of the processor as may"


class Overloaded(Unavailable):
    """The process does as much as it may; try again. ``cause``: the limit."""

    code = "placement.overloaded"

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"Too much at once: {cause.value}. Try again.")
        self.cause = cause


class Load(NamedTuple):
    """What a process has in flight: requests, bytes of their bodies, bytes of answers not yet sent."""

    reads: int = 0
    writes: int = 0
    body_bytes: int = 0
    answer_bytes: int = 0


class Arrival(NamedTuple):
    """What a request adds to the load. ``body_bytes``: of its body, as far as it is going to be read."""

    writes: bool
    body_bytes: int = 0


_READ: Final = Arrival(False)


def decide(load: Load, arrival: Arrival, limits: Limits) -> Cause | None:
    """The limit that a request would exceed; None if it is admitted.

    A body that is larger than all bodies may be together is admitted if there is no other.
    """
    if arrival.writes:
        if load.writes >= limits.writes:
            return Cause.WRITES
    elif load.reads >= limits.reads:
        return Cause.READS
    elif load.answer_bytes >= limits.answer_bytes:
        return Cause.ANSWERS
    if arrival.body_bytes and load.body_bytes and load.body_bytes + arrival.body_bytes > limits.body_bytes:
        return Cause.BODIES
    return None


class Admission:
    """The edge's admission: counts what is in flight, and refuses what exceeds the limits.

    ``uncounted``: paths of requests that wait long by their nature, and have limits of their own.
    ``cut_soon`` closes the connection of an ASGI scope whose client is too slow.
    """

    def __init__(
        self,
        application: Application,
        limits: Limits,
        uncounted: Iterable[str] = (),
        cut_soon: Callable[[Message], None] = lambda scope: None,
    ) -> None:
        self.load = Load()
        self._cut_soon = cut_soon
        self.limits = limits
        self._application = application
        self._uncounted = frozenset(uncounted)
        self._send_long = PatientSender(limits.send_seconds, self._count_answer, cut_soon).send

    def enter(self, request: Observation) -> Application | None:
        """Admit a request, with None, or return the application that refuses it."""
        scope = request.scope
        request.send_long = self._send_long
        if is_head_too_large(scope):
            scope[REFUSAL_KEY] = HeadTooLarge(f"URL and headers may have at most {LARGEST_HEAD} bytes.")
            return self._application
        if scope["path"] in self._uncounted:
            return None
        arrival = arrival_of(scope)
        cause = decide(self.load, arrival, self.limits)
        if cause is not None:
            scope[REFUSAL_KEY] = Overloaded(cause)
            return self._application
        scope[_ARRIVAL_KEY] = arrival
        self._count(arrival, 1)
        return None

    def leave(self, request: Observation) -> None:
        """An admitted request is over."""
        arrival: Arrival | None = request.scope.get(_ARRIVAL_KEY)
        if arrival is not None:
            self._count(arrival, -1)
        if request.status == TooSlow.status:
            metrics.SLOW_CLIENTS.labels("body").inc()
            self._cut_soon(request.scope)

    def _count(self, arrival: Arrival, sign: int) -> None:
        load = self.load
        self.load = Load(
            load.reads + (not arrival.writes) * sign,
            load.writes + arrival.writes * sign,
            load.body_bytes + arrival.body_bytes * sign,
            load.answer_bytes,
        )

    def _count_answer(self, size: int) -> None:
        self.load = self.load._replace(answer_bytes=self.load.answer_bytes + size)


def arrival_of(scope: Message) -> Arrival:
    """What the request of an ASGI scope adds to the load.

    A body of unknown length counts as the largest that is read. More than that is not read, and of a read
    nothing is.
    """
    if scope["method"] in _READS:
        return _READ
    for name, value in scope["headers"]:
        if name == b"content-length":
            return Arrival(True, min(int(value), LARGEST_BODY) if value.isdigit() else LARGEST_BODY)
        if name == b"transfer-encoding":
            return Arrival(True, LARGEST_BODY)
    return Arrival(True)
