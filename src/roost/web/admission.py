"""Admission: a process serves a request, or refuses it at once with 503.

Without a limit the requests that wait for a stopped database, or for their turn, would take memory without
bound, and each would be answered after its client has given up. A refusal costs little and comes at once.

Reads and writes have separate limits, so that no number of reads leads to the refusal of a claim.
"""

import enum
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from roost.process.metrics import catalogue as metrics
from roost.web.dispatch import Application, Message
from roost.web.errors import HeadTooLarge, TooSlow, Unavailable
from roost.web.limits import LARGEST_HEAD, Limits, is_head_too_large
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
    """The process has reached a limit; try again later. ``cause``: the limit."""

    code = "placement.overloaded"

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"Too much at once: {cause.value}. Try again.")
        self.cause = cause


class Load(NamedTuple):
    """The load of a process: requests in flight, bytes of their bodies, bytes of answers not yet sent."""

    reads: int = 0
    writes: int = 0
    body_bytes: int = 0
    answer_bytes: int = 0


class RequestArrival(NamedTuple):
    """The load that a request adds. ``body_bytes``: bytes of its body that are going to be read."""

    writes: bool
    body_bytes: int = 0


_READ: Final = RequestArrival(False)


def decide(load: Load, arrival: RequestArrival, limits: Limits) -> Cause | None:
    """Return the limit that a request would exceed; None if it is admitted.

    A body above the limit of all bodies together is admitted if no other body is in flight.
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
    """The edge's admission: counts the load in flight, and refuses requests that exceed the limits.

    ``uncounted``: paths of requests that wait long by their nature, and have other limits.
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
        """Subtract the load of an admitted request that is over."""
        arrival: RequestArrival | None = request.scope.get(_ARRIVAL_KEY)
        if arrival is not None:
            self._count(arrival, -1)
        if request.status == TooSlow.status:
            metrics.SLOW_CLIENTS.labels("body").inc()
            self._cut_soon(request.scope)

    def _count(self, arrival: RequestArrival, sign: int) -> None:
        load = self.load
        self.load = Load(
            load.reads + (not arrival.writes) * sign,
            load.writes + arrival.writes * sign,
            load.body_bytes + arrival.body_bytes * sign,
            load.answer_bytes,
        )

    def _count_answer(self, size: int) -> None:
        self.load = self.load._replace(answer_bytes=self.load.answer_bytes + size)


def arrival_of(scope: Message) -> RequestArrival:
    """Return the load that the request of an ASGI scope adds.

    A body of unknown length counts as the largest body that is read. No more than that is ever read of a
    write, and nothing of a read.
    """
    if scope["method"] in _READS:
        return _READ
    for name, value in scope["headers"]:
        if name == b"content-length":
            return RequestArrival(True, min(int(value), LARGEST_BODY) if value.isdigit() else LARGEST_BODY)
        if name == b"transfer-encoding":
            return RequestArrival(True, LARGEST_BODY)
    return RequestArrival(True)
