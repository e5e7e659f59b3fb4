"""Errors for the responses of a scheduler over HTTP, as a scheduler in the process would raise them."""

from typing import NamedTuple

import httpx
import msgspec

from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.api import refusals
from roost.scheduler.api.conventions import RunError, RunErrors
from roost.scheduler.errors import (
    BadRequestSpec,
    CannotWeigh,
    NoAlternate,
    NothingClaimed,
    NoValidHost,
    PlacementRefused,
    PlacementUnavailable,
    SchedulerFault,
    SchedulerRefused,
    SchedulerUnavailable,
    StaleClaim,
    UnknownZone,
)
from roost.scheduler.selection.claim_result import AWAY
from roost.scheduler.selection.outcome import ClaimAttempt
from roost.web.errors import BadRequest
from roost.web.idempotency import KeyInWork

_decode = msgspec.json.Decoder(RunErrors).decode

_PLAIN: dict[str, type[Exception]] = {
    refusals.BadSpec.code: BadRequestSpec,
    refusals.NoZone.code: UnknownZone,
    refusals.NoWeight.code: CannotWeigh,
    refusals.SchedulerFailed.code: SchedulerFault,
    refusals.PlacementRefuses.code: PlacementRefused,
    refusals.PlacementAway.code: PlacementUnavailable,
    ConcurrentUpdate.code: ConcurrentUpdate,
    KeyInWork.code: SchedulerUnavailable,
}


class Moving(NamedTuple):
    """The instance that is to be moved to an alternate, and the known generation of its claim."""

    instance: str = ""
    generation: int | None = None


def is_in_work(response: httpx.Response) -> bool:
    """Return whether a response says that the scheduler still works on the same request."""
    return response.status_code == KeyInWork.status and KeyInWork.code.encode() in response.content


def error_of(response: httpx.Response, moving: Moving) -> Exception:
    """Return the error for a response."""
    instance = moving.instance
    try:
        [error] = _decode(response.content).errors
    except (msgspec.DecodeError, ValueError):
        error = RunError(response.status_code, "", response.text[:1000], "", "")
    if error.code == refusals.NoHost.code:
        return NoValidHost(error.run or "", error.detail, error.steps, (), error.reasons)
    if error.code == refusals.NoAlternateLeft.code:
        return NoAlternate(
            tuple(ClaimAttempt(instance, each.host, "", each.cell, 0.0, each.refusal) for each in error.tried)
        )
    if error.code == refusals.HoldsNothing.code:
        return NothingClaimed(instance)
    if error.code == refusals.MovedByOthers.code:
        return StaleClaim(instance, moving.generation or 0, error.generation or 0)
    if error.code in _PLAIN:
        return _PLAIN[error.code](error.detail)
    text = f"the scheduler answers {response.status_code}: {' '.join(error.detail.split())}"
    if response.status_code in AWAY:
        return SchedulerUnavailable(text)
    if response.status_code >= 500:
        return SchedulerFault(text)
    return BadRequestSpec(text) if response.status_code == BadRequest.status else SchedulerRefused(text)
