"""The result of a claim attempt, and the one place that maps errors to results.

Scheduler, gateways and conductors all read a failed claim the same way:

    verdict    meaning                                                what follows
    CLAIMED    the host is claimed                                    the instance goes there
    REFUSED    this host cannot take the instance                     the next host is tried
    CHANGED    others got some of the host since it was read          the host's candidates are read again
    RETRY      the attempt tells nothing about the host               the same claim is made again later
    FATAL      neither another host nor waiting can help              the request ends with the reason
"""

from collections.abc import Awaitable
from enum import Enum
from typing import TypeVar

import msgspec

from roost.ledger import LedgerError
from roost.model.errors import OperatorError
from roost.model.text import fault_of
from roost.placement.errors import BadRequest, ConcurrentUpdate, Conflict, PlacementError
from roost.scheduler.errors import (
    PlacementFailed,
    PlacementRefused,
    PlacementUnavailable,
    SchedulerError,
    SchedulerFault,
    SchedulerUnavailable,
)
from roost.storage import DatabaseUnavailable, StorageError
from roost.web.auth import IdentityUnavailable
from roost.web.errors import HTTPError, TooMany, Unavailable

T = TypeVar("T")

_CONSUMER_CONFLICT = "consumer generation conflict"
"""Part of the text, here and upstream. Code and status equal those of a provider's generation conflict."""
_PROVIDER_GONE = ("Allocation for resource provider", "that does not exist")
"""Parts of the text of a 400, here and upstream, that names a deleted provider."""


class ClaimVerdict(Enum):
    """The verdict on a claim attempt; see the module's docstring."""

    CLAIMED = "claimed"
    REFUSED = "refused"
    CHANGED = "changed"
    RETRY = "retry"
    FATAL = "fatal"


class ClaimResult(msgspec.Struct, frozen=True):
    """The verdict on one attempt, and the reason, one line, if it is not `ClaimVerdict.CLAIMED`."""

    verdict: ClaimVerdict
    reason: str | None = None


CLAIMED = ClaimResult(ClaimVerdict.CLAIMED)


def result_of(error: Exception) -> ClaimResult:
    """Return the result of an attempt that ended with this error."""
    if isinstance(error, HTTPError):
        return ClaimResult(*_of_placement(error))
    if isinstance(error, SchedulerError):
        again = isinstance(error, PlacementUnavailable | SchedulerFault | SchedulerUnavailable)
        return ClaimResult(ClaimVerdict.RETRY if again else ClaimVerdict.FATAL, one_line(error))
    if isinstance(error, StorageError | LedgerError):
        # Errors for an operator to mend are final, unless the database may answer later.
        lost = isinstance(error, OperatorError) and not isinstance(error, DatabaseUnavailable)
        return ClaimResult(ClaimVerdict.FATAL if lost else ClaimVerdict.RETRY, one_line(error))
    return ClaimResult(*_of_transport(error))


AWAY = frozenset((TooMany.status, 502, Unavailable.status, 504))
"""HTTP statuses by which a service, or a proxy before it, reports a temporary outage."""


def is_outage(error: Exception) -> bool:
    """Return whether an error means that a database or a service does not answer at present.

    An outage tells nothing about the request, and is waited out, however long it takes.
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
    """Return whether placement refused because the consumer has changed since the writer read it."""
    return isinstance(error, ConcurrentUpdate) and _CONSUMER_CONFLICT in str(error)


def one_line(error: Exception) -> str:
    """Return the text of an error in one line; the name of its type if it has no text."""
    return " ".join(str(error).split()) or type(error).__name__


def named(error: Exception) -> str:
    """Return the type and the text of an error of a client, in one line."""
    return f"{type(error).__name__}: {fault_of(error)}"


def _of_placement(error: HTTPError) -> tuple[ClaimVerdict, str]:
    text = one_line(error)
    if isinstance(error, ConcurrentUpdate):
        return ClaimVerdict.RETRY, text
    if isinstance(error, Conflict):
        return ClaimVerdict.REFUSED, text
    if isinstance(error, BadRequest) and all(part in text for part in _PROVIDER_GONE):
        return ClaimVerdict.REFUSED, text
    text = f"{type(error).__name__}: {one_line(error)}"
    if error.status >= 500 or error.status == TooMany.status:
        return ClaimVerdict.RETRY, f"placement failed: {text}"
    return ClaimVerdict.FATAL, f"placement refuses to answer: {text}"


def _of_transport(error: Exception) -> tuple[ClaimVerdict, str]:
    """Return verdict and reason of a transport error, or of a defect of this program or a plugin."""
    # Processes that reach placement in the process never load httpx; this error has.
    import httpx

    text = named(error) if str(error) else type(error).__name__
    if isinstance(error, httpx.HTTPError | OSError):
        return ClaimVerdict.RETRY, f"placement cannot be reached: {text}"
    if isinstance(error, msgspec.MsgspecError | httpx.InvalidURL):
        return ClaimVerdict.FATAL, f"this is no Placement API: {text}"
    return ClaimVerdict.RETRY, text


async def translated(answer: Awaitable[T]) -> T:
    """Return the answer of placement, with its errors as the scheduler's.

    Raises:
        BadRequest, Conflict: as placement returns them.
        PlacementUnavailable: placement is away; `PlacementFailed` for any other error after which trying
            again may help.
        PlacementRefused: for any other error.
    """
    # As in `_of_transport`.
    import httpx

    try:
        return await answer
    except (BadRequest, Conflict):
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise PlacementRefused(f"this is no Placement API: {named(error)}") from error
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, PlacementError, OSError) as error:
        result = result_of(error)
        if result.verdict is not ClaimVerdict.RETRY:
            raise PlacementRefused(result.reason) from error
        kind = PlacementUnavailable if is_outage(error) else PlacementFailed
        raise kind(result.reason) from error
