"""Plans of one scheduler, made in forked processes, one at a time, beside the ledger's writer."""

import asyncio
from functools import partial
from typing import Final

import msgspec
import structlog

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
    run_forked,
)
from roost.scheduler.errors import BadRequestSpec, SchedulerError, SchedulerFault
from roost.scheduler.maintenance.live_fleet import WantedPlan, live_fleet
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.maintenance.planner import plan_maintenance
from roost.scheduler.selection.host_pools import HostPools

SECONDS: Final = 120.0
"""Seconds that a plan may take. The planner takes about two for 800 hosts with 18,000 instances."""
MORE_BYTES: Final = 2**30
"""Memory that the process of a plan may allocate, in bytes."""

_log = structlog.get_logger()


class _Refused(msgspec.Struct, frozen=True, tag=True):
    """A plan that cannot be made. ``bad``: because of the request."""

    text: str
    bad: bool


class _Planned(msgspec.Struct, frozen=True, tag=True):
    plan: MaintenancePlan


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Refused | _Planned] = msgspec.msgpack.Decoder(_Refused | _Planned)


class Plans:
    """Makes plans on the head of a ledger. For use from one event loop."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        self._ledger = ledger
        self._pools = pools
        self._turn = asyncio.Lock()

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        """Return a plan; None if it cannot be found in time, or another one is being made.

        Raises: `BadRequestSpec`, `SchedulerFault`, `StorageError`, `LedgerError`.
        """
        if self._turn.locked():
            return None
        async with self._turn:
            fleet = await self._ledger.current()
            try:
                found = await run_forked(
                    partial(_planned, fleet, self._pools, wanted, now), SECONDS, MORE_BYTES
                )
            except (ForkedFailed, ForkedTooLarge, ForkedTooLong, ForkedUnavailable) as error:
                _log.warning("a maintenance is not planned", error=str(error))
                return None
        answer = _decoder.decode(found)
        if isinstance(answer, _Refused):
            raise (BadRequestSpec if answer.bad else SchedulerFault)(answer.text)
        return answer.plan


def _planned(fleet: Fleet, pools: HostPools, wanted: WantedPlan, now: float) -> bytes:
    """Return the plan, encoded. For a forked process."""
    try:
        return _encode(_Planned(plan_maintenance(live_fleet(fleet, pools, wanted, now))))
    except SchedulerError as error:
        return _encode(_Refused(str(error), isinstance(error, BadRequestSpec)))
