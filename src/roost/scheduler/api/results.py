"""``POST /v1/scheduler/results``: a platform without Roost's conductors reports the result of a build."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.record import ABANDONED, FAILED, PENDING, REFUSED, Attempt
from roost.model.vocabulary import MAX_NAME
from roost.placement.wire.uuids import DASHED_UUID, LONGEST_UUID, canonical_uuid
from roost.records import RunWithAttempts, Search
from roost.scheduler.api.records import find
from roost.scheduler.api.service import SchedulerService
from roost.web.errors import Conflict, NotFound, Unavailable
from roost.web.request import Request, Response

FLUSH_SECONDS = 5.0
"""Most seconds that an operation waits until records are written."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00]*\Z")]


class HasEnded(Conflict):
    """The attempt has ended with another result, or never held its host."""

    code = "scheduler.attempt_has_ended"


class EndedAttempt(msgspec.Struct, forbid_unknown_fields=True):
    """The result of an attempt to build an instance.

    `run` is the id of the run that chose the host, `instance` the instance. `ordinal` or `host` name the
    attempt: its number from 1, as the selected host has it, or the host's name. A name stands for the pending
    attempt on this host, else for the last one. `reason` says why a build failed or was abandoned.
    """

    run: _Name
    instance: Annotated[str, Meta(pattern=DASHED_UUID, max_length=LONGEST_UUID)]
    result: Literal["built", "failed", "abandoned"]
    ordinal: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    host: _Name | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=8192, pattern=r"^[^\x00]*\Z")] | None = None

    def __post_init__(self) -> None:
        if self.ordinal is None and self.host is None:
            raise ValueError("neither ordinal nor host is given: they name the attempt")
        if (self.reason is not None) != (self.result in (FAILED, ABANDONED)):
            raise ValueError(f"a result {self.result} has {'a' if self.reason is None else 'no'} reason")


async def end_attempt(service: SchedulerService, req: Request, resp: Response) -> Attempt:
    """Record the result of an attempt to build an instance on its host; the attempt is pending until then.

    The response has the attempt. The first result counts: the same one may be sent again, another one is
    refused. Only the record changes: other operations free or move the claim.
    """
    wanted: EndedAttempt = req.body
    # The run may be a moment old: the records of this process are written first.
    await _written(service)
    found = await _attempt(service, wanted)
    if found.result == PENDING:
        ended = msgspec.structs.replace(
            found, result=wanted.result, reason=wanted.reason, finished_at=service.clock()
        )
        service.records.put([], [ended])
        await _written(service)
        # Another process may have recorded a result meanwhile.
        found = await _attempt(service, msgspec.structs.replace(wanted, ordinal=found.ordinal))
    if found.result == PENDING:
        raise Unavailable("the result is not recorded: records are being dropped; try again")
    if found.result != wanted.result:
        raise HasEnded(f"attempt {found.ordinal} of {found.instance} on {found.host} is {found.result}")
    return found


async def _written(service: SchedulerService) -> None:
    if not await service.records.flush(FLUSH_SECONDS):
        raise Unavailable("records cannot be written at the moment: try again")


async def _attempt(service: SchedulerService, wanted: EndedAttempt) -> Attempt:
    runs = await find(service.records, Search(run=wanted.run), 1)
    if not runs:
        raise NotFound(f"no run {wanted.run} is recorded")
    instance = canonical_uuid(wanted.instance)
    named = [each for each in _of(runs[0], instance) if _is_named(each, wanted)]
    if not named:
        ordinal = "" if wanted.ordinal is None else f" {wanted.ordinal}"
        host = "" if wanted.host is None else f" on {wanted.host}"
        raise NotFound(f"run {wanted.run} has no attempt{ordinal} of {instance}{host}")
    held = [each for each in named if each.result != REFUSED]
    return next((each for each in held if each.result == PENDING), (held or named)[-1])


def _of(run: RunWithAttempts, instance: str) -> list[Attempt]:
    """Return the attempts of an instance in their order."""
    own = [each for each in run.attempts if each.instance == instance]
    return sorted(own, key=lambda each: each.ordinal)


def _is_named(attempt: Attempt, wanted: EndedAttempt) -> bool:
    return wanted.ordinal in (None, attempt.ordinal) and wanted.host in (None, attempt.host)
