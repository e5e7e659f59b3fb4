"""The errors of the scheduler as errors of HTTP.

HTTPError
├── BadRequest
│   └── BadSpec            400  the request spec or a selection cannot be read, or not be turned into a query
│       └── NoZone         400  there is no availability zone of the name
├── Conflict
│   ├── NoHost             409  no host, or not enough of them, can take the request
│   ├── NoAlternateLeft    409  no alternate can be used; the claim is as it was
│   ├── HoldsNothing       409  the instance whose host is to be replaced holds nothing
│   ├── MovedByOthers      409  the claim of the instance was moved by others since it was read
│   └── NoWeight           409  a host that the request may use has no weight, and the options forbid that
├── SchedulerFailed        500  a filter, a weigher or the scheduler failed
├── PlacementRefuses       502  placement refuses what the scheduler asks: an operator has to act
├── PlacementAway          503  placement cannot be reached, or failed: try again
└── OutcomeUncertain       503  placement has not answered a claim: it may still be made

An instance that holds something already is `roost.placement.errors.ConcurrentUpdate`, status 409.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from roost.model.reasons import Reasons
from roost.model.record import Step
from roost.model.spec import UnreadKey
from roost.model.text import clean_text
from roost.model.visibility import NO_VALID_HOST, Viewer, seen, seen_by_project, shown_whole, visible
from roost.scheduler import errors
from roost.scheduler.api.wire.answers import TriedAlternate
from roost.web.errors import BadRequest, Conflict, HTTPError, OutcomeUncertain, Unavailable


class BadSpec(BadRequest):
    """The request spec or a selection cannot be read, or cannot be turned into a query."""

    code = "scheduler.bad_request_spec"


class NoZone(BadSpec):
    """No aggregate is the availability zone that the request names."""

    code = "scheduler.unknown_zone"


class NoHost(Conflict):
    """No host, or not enough of them, can take the request. Nothing is claimed.

    ``run`` is the id of the run, and ``steps`` have the number of hosts that each of its steps left.
    ``reasons`` is the explanation, None if it was not found in time. ``warnings`` are the keys of the request
    that had no effect.
    """

    code = "scheduler.no_valid_host"

    def __init__(
        self,
        reason: str,
        run: str,
        steps: tuple[Step, ...],
        reasons: Reasons | None,
        warnings: tuple[UnreadKey, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.run = run
        self.steps = steps
        self.reasons = reasons
        self.warnings = warnings


class NoAlternateLeft(Conflict):
    """No alternate of the instance can be used. Its claim is as it was.

    ``tried`` are the alternates that were passed over, each with the reason.
    """

    code = "scheduler.no_alternate"

    def __init__(self, reason: str, tried: tuple[TriedAlternate, ...]) -> None:
        super().__init__(reason)
        self.tried = tried


class HoldsNothing(Conflict):
    """The instance whose host is to be replaced holds nothing."""

    code = "scheduler.nothing_claimed"


class MovedByOthers(Conflict):
    """The claim of the instance was moved by others since it was read. Nothing is changed.

    ``generation`` is the present one of the consumer.
    """

    code = "scheduler.stale_claim"

    def __init__(self, reason: str, generation: int) -> None:
        super().__init__(reason)
        self.generation = generation


class NoWeight(Conflict):
    """A host that the request may use has no weight, and the options forbid that."""

    code = "scheduler.cannot_weigh"


class SchedulerFailed(HTTPError):
    """A filter, a weigher or the scheduler itself failed; the log has the error. Nothing is claimed."""

    status = 500
    code = "scheduler.fault"


class PlacementRefuses(HTTPError):
    """Placement refuses the scheduler's request, because of its token for example, or is no Placement API."""

    status = 502
    code = "scheduler.placement_refused"


class PlacementAway(Unavailable):
    """Placement cannot be reached, or failed; nothing is known of the hosts. Trying again may help."""

    code = "scheduler.placement_unavailable"


_KINDS: tuple[tuple[type[errors.SchedulerError], type[HTTPError]], ...] = (
    (errors.ClaimsInDoubt, OutcomeUncertain),
    (errors.UnknownZone, NoZone),
    (errors.BadRequestSpec, BadSpec),
    (errors.NothingClaimed, HoldsNothing),
    (errors.CannotWeigh, NoWeight),
    (errors.PlacementFailed, SchedulerFailed),
    (errors.PlacementUnavailable, PlacementAway),
    (errors.PlacementRefused, PlacementRefuses),
    (errors.SchedulerError, SchedulerFailed),
)

OF_RUNS = (BadSpec, NoHost, NoWeight, SchedulerFailed, PlacementRefuses, PlacementAway)
"""The errors that a run can end with."""

OF_ALTERNATES = (
    BadSpec,
    NoAlternateLeft,
    HoldsNothing,
    MovedByOthers,
    SchedulerFailed,
    PlacementRefuses,
    PlacementAway,
)
"""The errors that the use of an alternate can end with."""


@seen_by_project(NoHost)
def _no_host(refusal: NoHost) -> NoHost:
    reasons = None if refusal.reasons is None else seen(refusal.reasons)
    sentence = NO_VALID_HOST if reasons is None else reasons.sentence
    return NoHost(sentence, refusal.run, (), reasons, refusal.warnings)


@seen_by_project(NoAlternateLeft)
def _no_alternate(refusal: NoAlternateLeft) -> NoAlternateLeft:
    return NoAlternateLeft("no alternate of the instance can be used", ())


@seen_by_project(NoWeight)
def _no_weight(refusal: NoWeight) -> NoWeight:
    return NoWeight("a host that the request may use has no weight")


shown_whole(BadSpec, NoZone, HoldsNothing, MovedByOthers, SchedulerFailed, PlacementRefuses, PlacementAway)


PUBLIC_REASON: Final = 220
"""Most characters of a public reason. Nova puts a sentence of its own before it and keeps 255 characters."""


def public_reason(error: errors.NoValidHost) -> str:
    """Return the reason of a refusal for the tenant: one line, with the id of the run.

    It has no name of a host, a provider or a server group. The operator finds the whole reason by the id.
    """
    reasons = None if error.reasons is None else seen(error.reasons)
    sentence = "no host can take the request" if reasons is None else reasons.sentence
    run = f" (run {error.run})"
    return clean_text(" ".join(sentence.split()), PUBLIC_REASON - len(run)) + run


@contextmanager
def as_http(viewer: Viewer, *, warn: bool = True) -> Iterator[None]:
    """Raise the errors of the scheduler as those of HTTP, a refusal with the details that ``viewer`` may see.

    ``warn``: a refusal has the keys of the request that had no effect.
    """
    try:
        yield
    except errors.SchedulerError as error:
        told = _as_http(error)
        if isinstance(told, NoHost) and not warn:
            told.warnings = ()
        raise visible(told, viewer) from error


def _as_http(error: errors.SchedulerError) -> HTTPError:
    match error:
        case errors.NoValidHost():
            return NoHost(error.reason, error.run, error.steps, error.reasons, error.warnings)
        case errors.NoAlternate():
            passed = (TriedAlternate(each.host, each.cell, each.refusal) for each in error.tries)
            return NoAlternateLeft(str(error), tuple(passed))
        case errors.StaleClaim():
            return MovedByOthers(str(error), error.generation)
    return next(theirs for ours, theirs in _KINDS if isinstance(error, ours))(str(error))
