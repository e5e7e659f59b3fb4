"""The result of an attempt to claim a host, and the one place that maps errors to results.

Scheduler, gateways and conductors all read a failed claim the same way:

    verdict    meaning                                                what follows
    CLAIMED    the host is claimed                                    the instance goes there
    REFUSED    this host cannot take the instance                     the next host is tried
    CHANGED    others got some of the host since it was read          the host is asked for candidates again
    RETRY      the attempt says nothing about the host                the same claim is made again later
    FATAL      neither another host nor waiting can help              the request ends with the reason
"""

from enum import Enum

import msgspec

from roost.ledger import LedgerError
from roost.model.errors import OperatorError
from roost.model.transport_faults import fault_of
from roost.placement.errors import BadRequest, ConcurrentUpdate, Conflict
from roost.scheduler.errors import (
    PlacementFailed,
    PlacementUnavailable,
    SchedulerError,
    SchedulerFault,
    SchedulerUnavailable,
)
from roost.storage import DatabaseUnavailable, StorageError
from roost.web.auth import IdentityUnavailable
from roost.web.errors import HTTPError, TooMany, Unavailable

_CONSUMER_CONFLICT = "consumer generation conflict"
"""Part of the text, here and upstream. Code and status are those of a provider's generation as well."""
_PROVIDER_GONE = ("Allocation for resource provider", "that does not exist")
"""Parts of the text of a 400, here and upstream, that names a provider which was deleted."""


class Verdict(Enum):
    """What an attempt to claim a host came to; see the module's docstring."""

    CLAIMED = "claimed"
    REFUSED = "refused"
    CHANGED = "changed"
    RETRY = "retry"
    FATAL = "fatal"


class ClaimResult(msgspec.Struct, frozen=True):
    """The verdict on one attempt, and why it is not `Verdict.CLAIMED`: one line."""

    verdict: Verdict
    reason: str | None = None


CLAIMED = ClaimResult(Verdict.CLAIMED)


def result_of(error: Exception) -> ClaimResult:
    """The result of an attempt that ended with this error."""
    if isinstance(error, HTTPError):
        return ClaimResult(*_of_placement(error))
    if isinstance(error, SchedulerError):
        again = isinstance(error, PlacementUnavailable | SchedulerFault | SchedulerUnavailable)
        return ClaimResult(Verdict.RETRY if again else Verdict.FATAL, one_line(error))
    if isinstance(error, StorageError | LedgerError):
        # An operator must act where the error is one of his, unless the database may answer later.
        lost = isinstance(error, OperatorError) and not isinstance(error, DatabaseUnavailable)
        return ClaimResult(Verdict.FATAL if lost else Verdict.RETRY, one_line(error))
    return ClaimResult(*_of_transport(error))


AWAY = frozenset((TooMany.status, 502, Unavailable.status, 504))
"""HTTP statuses by which a service, or a proxy before it, says that it does not answer at present."""


def is_outage(error: Exception) -> bool:
    """Whether the error says that a database or a service does not answer at present.

    An outage says nothing of what was asked, and is waited out, however long it takes.
    """
    if isinstance(error, HTTPError):
        return error.status in AWAY
    if isinstance(error, SchedulerError):
        away = isinstance(error, PlacementUnavailable | SchedulerUnavailable)
        return away and not isinstance(error, PlacementFailed)
    if isinstance(error, StorageError | LedgerError | IdentityUnavailable | OSError):
        return True
    # As in `_of_transport`.
    import httpx

    return isinstance(error, httpx.TransportError)


def is_consumer_conflict(error: Exception) -> bool:
    """Whether placement refused because the consumer holds something else than the writer thinks."""
    return isinstance(error, ConcurrentUpdate) and _CONSUMER_CONFLICT in str(error)


def one_line(error: Exception) -> str:
    """The text of an error in one line; the name of its type where it has no text."""
    return " ".join(str(error).split()) or type(error).__name__


def named(error: Exception) -> str:
    """The type and the text of an error of a client, in one line."""
    return f"{type(error).__name__}: {fault_of(error)}"


def _of_placement(error: HTTPError) -> tuple[Verdict, str]:
    text = one_line(error)
    if isinstance(error, ConcurrentUpdate):
        return Verdict.RETRY, text
    if isinstance(error, Conflict):
        return Verdict.REFUSED, text
    if isinstance(error, BadRequest) and all(part in text for part in _PROVIDER_GONE):
        return Verdict.REFUSED, text
    text = f"{type(error).__name__}: {one_line(error)}"
    if error.status >= 500 or error.status == TooMany.status:
        return Verdict.RETRY, f"placement failed: {text}"
    return Verdict.FATAL, f"placement refuses to answer: {text}"


def _of_transport(error: Exception) -> tuple[Verdict, str]:
    """An error of the way to placement, or a defect: of this program, or of a plugin."""
    # Processes that reach placement in the process never load httpx; this error has.
    import httpx

    text = named(error) if str(error) else type(error).__name__
    if isinstance(error, httpx.HTTPError | OSError):
        return Verdict.RETRY, f"placement cannot be reached: {text}"
    if isinstance(error, msgspec.MsgspecError | httpx.InvalidURL):
        return Verdict.FATAL, f"this is no Placement API: {text}"
    return Verdict.RETRY, text
