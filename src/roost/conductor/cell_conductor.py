"""The conductor of one cell: retries failed builds on alternates, frees what was destroyed.

It needs its cell, placement and the records, and nothing else: no scheduler, no other cell.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from roost.cells import Cell
from roost.cells.cell import changed
from roost.conductor.together import together
from roost.ledger import LedgerError
from roost.model.instance import DESTROYED, FAILED, Fault, Instance
from roost.model.record import CLAIMED, REFUSED, Attempt, Run
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.spec import Selection
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.scheduler.gateways.claiming import INSTANCE
from roost.storage import StorageError

OUTAGES = (StorageError, LedgerError, PlacementError)
"""What a conductor outlives: it tries again later."""

_log = structlog.get_logger()


class AttemptSink(Protocol):
    """Where attempts are recorded; `roost.records.RecordQueue` is one."""

    def put(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Take records that are to be written. Never raises and never waits."""


class CellConductor:
    """Works through what the cell's database says is to be done. Start one for each cell.

    ``poll_seconds``: how often the cell is looked at though nothing was heard.
    """

    def __init__(
        self,
        cell: Cell,
        placement: Placement,
        records: AttemptSink,
        *,
        poll_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cell = cell
        self._placement = placement
        self._records = records
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._wake = cell.listen(FAILED, DESTROYED)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self.step()
            except OUTAGES as error:
                _log.warning("will try again", cell=self._cell.name, error=str(error))
            await changed(self._wake, self._poll_seconds)

    async def step(self) -> None:
        """Do everything that is to be done now."""
        waiting = await self._cell.in_state(FAILED, DESTROYED)
        failed = [instance for instance in waiting if instance.state == FAILED]
        destroyed = [instance.uuid for instance in waiting if instance.state == DESTROYED]
        if failed:
            await together(self._retry(instance) for instance in failed)
        if destroyed:
            await self._placement.delete_allocations(destroyed)
            await self._cell.forget(destroyed)

    async def _retry(self, instance: Instance) -> None:
        """Swap the claim to the next alternate that can be had and assign the instance there."""
        reason = instance.reason or ""
        attempts = [self._attempt(instance, instance.host or "", 0.0, BUILD_FAILED, reason)]
        refusals: list[str] = []
        for number, alternate in enumerate(instance.alternates, 1):
            refusal = await self._swap(instance, alternate)
            attempts.append(
                self._attempt(
                    instance,
                    alternate.host,
                    alternate.weight,
                    CLAIMED if refusal is None else REFUSED,
                    refusal,
                )
            )
            if refusal is None:
                self._records.put([], attempts)
                await self._cell.reassign(instance.uuid, alternate, instance.alternates[number:])
                return
            refusals.append(f"{alternate.host}: {refusal}")
        self._records.put([], attempts)
        await self._placement.delete_allocations([instance.uuid])
        faults = await self._cell.faults_of(instance.uuid)
        await self._cell.give_up(instance.uuid, _all_reasons(faults, refusals))

    async def _swap(self, instance: Instance, alternate: Selection) -> str | None:
        """Replace the instance's claim by one on the alternate, in one atomic write; returns a refusal.

        Repeating it changes nothing: a crash between the claim and the assignment is harmless.
        """
        try:
            await self._placement.write_allocations(
                [
                    ConsumerWrite(
                        consumer=instance.uuid,
                        allocations=alternate.allocations,
                        project_id=instance.project_id,
                        user_id=instance.user_id,
                        consumer_type=INSTANCE,
                    )
                ]
            )
        except PlacementError as error:
            return str(error)
        return None

    def _attempt(
        self, instance: Instance, host: str, weight: float, result: str, reason: str | None
    ) -> Attempt:
        return Attempt(
            run=instance.run,
            request_id=instance.request_id,
            instance=instance.uuid,
            at=self._clock(),
            host=host,
            cell=self._cell.name,
            weight=weight,
            result=result,
            reason=reason,
        )


def _all_reasons(faults: Sequence[Fault], refusals: Sequence[str]) -> str:
    reasons = [f"attempt {fault.attempt} on {fault.host}: {fault.reason}" for fault in faults]
    reasons += [f"alternate {refusal}" for refusal in refusals]
    return f"Exceeded maximum number of retries after {len(faults)} attempts: " + "; ".join(reasons)
