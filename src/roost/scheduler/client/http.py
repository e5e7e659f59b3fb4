"""A scheduler over HTTP, with the calls of `roost.scheduler.Scheduler` that conductors make."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec

from roost.model.spec import Destination, RequestSpec, UnreadKey
from roost.placement.errors import ConcurrentUpdate
from roost.process.option_source import Source
from roost.scheduler.api import refusals
from roost.scheduler.api.conventions import RunError, RunErrors
from roost.scheduler.api.destinations import LONGEST_REASON
from roost.scheduler.api.wire.answers import CheckedRequest, ShownDestinations, ShownReplacement
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
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.request.scheduling_request import HostRequest, new_run_id
from roost.scheduler.selection.claim_result import AWAY, named
from roost.scheduler.selection.outcome import ClaimAttempt
from roost.scheduler.selection.replacement import AlternateRequest, Replacement
from roost.web.auth import IdentityUnavailable
from roost.web.auth.credentials import Caller, Credentials
from roost.web.client_transport import http_client
from roost.web.errors import BadRequest
from roost.web.idempotency import HEADER, KeyInWork

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


GROUP = "scheduler_service"
"""The group of the keystoneauth1 options for the connection to a scheduler."""

SERVICE_TYPE = "scheduler"
"""The scheduler's type in the service catalogue, unless the option ``service_type`` has another one."""

ANSWER_SECONDS = 90.0
"""Seconds to wait for a response: longer than a run may take by default."""

CHECK_SECONDS = 3.0
"""Seconds to wait for the check of a request. It is short because a user waits for the result."""

CONNECT_SECONDS = 10.0
"""Seconds to wait for a connection."""

ATTEMPTS = 4
"""Most times that a request without a response is sent in all."""

FIRST_PAUSE = 0.25
"""Seconds before a request is sent again; each further pause is twice as long."""

LOOKS = 90
"""Most times that a request is sent again while the scheduler still works on the same one."""

LOOK_PAUSE = 1.0
"""Seconds before each of these repetitions."""

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class HttpScheduler:
    """A client of a scheduler over HTTP. Close it, or use it as an async context manager.

    A request without a response is sent again. That is safe: a request for hosts names its run, and a
    scheduler that knows the run responds as it did; the use of an alternate may be repeated in any case.

    Args:
        credentials: The root URL of the scheduler, and tokens for it.
        client: The httpx client to send requests with; by default a new one.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        client: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._caller = Caller(credentials, client or http_client(_timeout()))
        self._sleep = sleep

    @classmethod
    def configured(cls, source: Source) -> "HttpScheduler":
        """Return a client by the options of keystoneauth1 in `GROUP`. Raises `OperatorError`."""
        # Imported only here: its import takes as long as all others together.
        from roost.web.auth.keystone_credentials import read_client_options

        options = read_client_options(source, GROUP, SERVICE_TYPE)
        return cls(options.credentials, client=http_client(_timeout(), options.verify))

    async def __aenter__(self) -> "HttpScheduler":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._caller.close()

    async def select_destinations(self, request: HostRequest) -> tuple[Destination, ...]:
        """As `roost.scheduler.Scheduler.select_destinations`.

        ``global_request_id`` goes with the request if it is that of the present one.

        It raises the errors that this raises, and further ones.

        Raises:
            SchedulerUnavailable: There was no response, and the instances may be claimed nevertheless: free
                them before a new request.
            ConcurrentUpdate: An instance holds something, perhaps by a request whose response was lost and
                whose run no process knows any more: free the instance before a new request.
            SchedulerRefused: The scheduler refuses the token, or there is none at the URL.
            BadRequestSpec: As there, and if the scheduler is of a version that does not know ``handed``.
            ValueError: The request has ``beside`` or ``held_by``, which HTTP does not carry.
        """
        if request.beside or request.held_by:
            raise ValueError("beside and held_by cannot be asked for over HTTP")
        run = request.run or new_run_id()
        body: dict[str, Any] = {
            "request_spec": request.spec,
            "count": len(request.instances),
            "num_alternates": request.num_alternates,
            "instances": request.instances,
            "min_count": request.min_count,
            "request_id": request.request_id,
            "generations": dict(request.generations),
            "run": run,
        }
        if request.handed:
            # Only where it is needed: a scheduler of an earlier version refuses fields that it does not know.
            body["handed"] = dict(request.handed)
        if request.of_instances:
            body["of_instances"] = dict(request.of_instances)
        found = await self._asked("/v1/select_destinations", body, ShownDestinations, Moving(), key=run)
        return found.destinations or ()

    async def check_request(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """As `roost.scheduler.Scheduler.check_request`. The request is sent once, and waits a few seconds.

        Raises what that raises, and `SchedulerUnavailable` and `SchedulerRefused`.
        """
        body = {"request_spec": spec}
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                found = await self._once("/v1/scheduler/check", body, CheckedRequest, Moving(), None)
        except TimeoutError as error:
            raise SchedulerUnavailable(f"the scheduler gives no answer in {CHECK_SECONDS:.0f} s") from error
        return found.warnings

    async def plan_maintenance(self, wanted: WantedPlan) -> MaintenancePlan | None:
        """As `roost.scheduler.Scheduler.plan_maintenance`. The request is sent once.

        Raises what that raises, and `SchedulerUnavailable` (also where that returns None) and
        `SchedulerRefused`.
        """
        body = msgspec.to_builtins(wanted)
        return await self._once("/v1/scheduler/plan-maintenance", body, MaintenancePlan, Moving(), None)

    async def use_alternate(self, request: AlternateRequest) -> Replacement:
        """As `roost.scheduler.Scheduler.use_alternate`.

        Raises what that raises, and `SchedulerUnavailable` and `SchedulerRefused`.
        """
        instance = request.instance
        body: dict[str, Any] = {
            "request_spec": request.spec,
            "instance": instance,
            "failed": request.failed,
            "alternates": request.alternates,
            "reason": request.reason[:LONGEST_REASON] or "unknown",
            "run": request.run or "unknown",
            "request_id": request.request_id or None,
        }
        if request.held_by:
            body["held_by"] = request.held_by
        if request.of_instance:
            body["of_instance"] = request.of_instance
        moving = Moving(instance, request.failed.generation)
        found = await self._asked("/v1/use_alternate", body, ShownReplacement, moving)
        tries = tuple(
            ClaimAttempt(instance, each.host, "", each.cell, 0.0, each.refusal) for each in found.tried
        )
        return Replacement(selected=found.selected, alternates=found.alternates or (), tries=tries)

    async def _asked(
        self, path: str, body: dict[str, Any], form: type[T], moving: Moving, *, key: str | None = None
    ) -> T:
        """Return the response to a request. ``key``: of the request; None if it may always be repeated."""
        repeated = False
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._once(path, body, form, moving, key)
            except (SchedulerUnavailable, ConcurrentUpdate) as error:
                # A conflict is not final while the first request may be under way in another process.
                if not left or (isinstance(error, ConcurrentUpdate) and not repeated):
                    raise
            await self._sleep(FIRST_PAUSE * 2.0 ** (ATTEMPTS - 1 - left))
            repeated = True
            if key is not None:
                body = {**body, "repeated": True}
        raise AssertionError

    async def _once(
        self, path: str, body: dict[str, Any], form: type[T], moving: Moving, key: str | None
    ) -> T:
        headers = {"accept": "application/json", "content-type": "application/json"}
        if key is not None:
            headers[HEADER] = key
        try:
            response = await self._caller.send("POST", path, headers, _encode(body))
            for _ in range(LOOKS):
                if not is_in_work(response):
                    break
                # The first request is still being decided, after its connection was lost.
                await self._sleep(LOOK_PAUSE)
                response = await self._caller.send("POST", path, headers, _encode(body))
            if response.is_error:
                raise error_of(response, moving)
            return msgspec.json.decode(response.content, type=form)
        except IdentityUnavailable as error:
            raise SchedulerUnavailable(str(error)) from error
        except (httpx.InvalidURL, msgspec.MsgspecError) as error:
            raise SchedulerRefused(f"this is no scheduler: {named(error)}") from error
        except (httpx.HTTPError, OSError) as error:
            raise SchedulerUnavailable(f"the scheduler cannot be reached: {named(error)}") from error


def _timeout() -> httpx.Timeout:
    return httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
