"""The conductor of one cell: retries failed builds on alternates, frees what was destroyed.

It needs its cell, placement and the records, and nothing else: no scheduler, no other cell.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import structlog

from roost.cells import Cell
from roost.cells.cell import changed
from roost.conductor.backoff import Backoff
from roost.conductor.together import together
from roost.ledger import LedgerError
from roost.logs import RequestIds, serving
from roost.metrics import catalogue as metrics
from roost.model.instance import DESTROYED, FAILED, Fault, Instance
from roost.model.record import CLAIMED, REFUSED, Attempt, Run
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.spec import Selection
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.scheduler.claim_result import ClaimResult, Verdict, one_line, result_of
from roost.scheduler.gateways.claiming import INSTANCE
from roost.storage import StorageError

_log = structlog.get_logger()


class AttemptSink(Protocol):
    """Where attempts are recorded; `roost.records.RecordQueue` is one."""

    def put(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Take records that are to be written. Never raises and never waits."""


class _Postponed(NamedTuple):
    """A move that failed: how often so far, when it is due again (monotonic seconds), and why it failed."""

    failures: int
    due: float
    reason: str


class CellConductor:
    """Works through what the cell's database says is to be done. Start one for each cell.

    ``poll_seconds``: how often the cell is looked at though no listener was called. ``backoff``: how often
    the move of an instance is tried, and after which pauses. ``monotonic``: the clock of these pauses.
    """

    def __init__(
        self,
        cell: Cell,
        placement: Placement,
        records: AttemptSink,
        *,
        poll_seconds: float = 1.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cell = cell
        self._placement = placement
        self._records = records
        self._poll_seconds = poll_seconds
        self._backoff = backoff
        self._clock = clock
        self._monotonic = monotonic
        self._postponed: dict[str, _Postponed] = {}
        self._wake = cell.listen(FAILED, DESTROYED)

    async def run(self) -> None:
        """Work until cancelled."""
        failures = 0
        while True:
            pause = self._poll_seconds
            try:
                await self.step()
                failures = 0
            except Exception as error:
                failures += 1
                pause = max(pause, self._backoff.pause(failures))
                self._warn("a step of the cell conductor failed", error, failures)
            await changed(self._wake, pause)

    async def step(self) -> None:
        """Do everything that is to be done now. Raises `StorageError` and what placement raises."""
        waiting = await self._cell.in_state(FAILED, DESTROYED)
        failed = [instance for instance in waiting if instance.state == FAILED]
        destroyed = [instance.uuid for instance in waiting if instance.state == DESTROYED]
        postponed = {each.uuid: self._postponed[each.uuid] for each in failed if each.uuid in self._postponed}
        self._postponed = postponed
        now = self._monotonic()
        due = [each for each in failed if each.uuid not in postponed or postponed[each.uuid].due <= now]
        if due:
            await together(self._move(instance) for instance in due)
        if destroyed:
            await self._placement.delete_allocations(destroyed)
            await self._cell.forget(destroyed)

    async def _move(self, instance: Instance) -> None:
        """Move a failed instance to an alternate, give it up, or postpone the decision.

        An error concerns this instance alone, unless a database fails. Raises `StorageError`, `LedgerError`.
        """
        with serving(RequestIds(instance.request_id)):
            try:
                await self._move_now(instance)
            except (StorageError, LedgerError):
                raise
            except Exception as error:
                failures = self._postpone(instance, result_of(error).reason or "")
                self._warn("an instance could not be moved", error, failures, instance=instance.uuid)

    async def _move_now(self, instance: Instance) -> None:
        attempts = [self._attempt(instance, instance.host or "", 0.0, BUILD_FAILED, instance.reason or "")]
        postponed = self._postponed.get(instance.uuid)
        if postponed is not None and self._backoff.exhausted(postponed.failures):
            return await self._give_up(instance, attempts, [postponed.reason])
        refusals: list[str] = []
        for number, alternate in enumerate(instance.alternates, 1):
            result = await self._swap(instance, alternate)
            reason = f"alternate {alternate.host}: {result.reason}"
            if result.verdict is Verdict.RETRY:
                failures = self._postpone(instance, reason)
                _log.warning(
                    "an alternate could not be claimed",
                    cell=self._cell.name,
                    instance=instance.uuid,
                    failures=failures,
                    error=reason,
                )
                return None
            claimed = result.verdict is Verdict.CLAIMED
            metrics.MOVES.labels("moved" if claimed else "refused").inc()
            attempts.append(
                self._attempt(
                    instance,
                    alternate.host,
                    alternate.weight,
                    CLAIMED if claimed else REFUSED,
                    result.reason,
                )
            )
            if claimed:
                self._records.put([], attempts)
                await self._cell.reassign(instance.uuid, alternate, instance.alternates[number:])
                self._postponed.pop(instance.uuid, None)
                return None
            refusals.append(reason)
            if result.verdict is Verdict.FATAL:
                break
        return await self._give_up(instance, attempts, refusals)

    async def _give_up(
        self, instance: Instance, attempts: Sequence[Attempt], refusals: Sequence[str]
    ) -> None:
        """Free the instance's claim and put it in error, with all reasons."""
        await self._placement.delete_allocations([instance.uuid])
        faults = await self._cell.faults_of(instance.uuid)
        await self._cell.give_up(instance.uuid, _all_reasons(faults, refusals))
        metrics.MOVES.labels("given_up").inc()
        self._records.put([], attempts)

    def _postpone(self, instance: Instance, reason: str) -> int:
        """Leave an instance as it is, with its alternates, until its next attempt is due.

        Returns how often it has failed in a row.
        """
        metrics.MOVES.labels("postponed").inc()
        before = self._postponed.get(instance.uuid)
        failures = 1 if before is None else before.failures + 1
        due = self._monotonic() + self._backoff.pause(failures)
        self._postponed[instance.uuid] = _Postponed(failures, due, reason)
        return failures

    def _warn(self, event: str, error: Exception, failures: int, **values: str) -> None:
        """Log an error, an unexpected one with its traceback when it comes for the first time."""
        known = isinstance(error, StorageError | LedgerError | PlacementError)
        _log.warning(
            event,
            cell=self._cell.name,
            error=one_line(error),
            failures=failures,
            exc_info=failures == 1 and not known,
            **values,
        )

    async def _swap(self, instance: Instance, alternate: Selection) -> ClaimResult:
        """Replace the instance's claim by one on the alternate, in one atomic write.

        Repeating it changes nothing: a crash between the claim and the assignment is harmless. Raises
        `StorageError` and `LedgerError` of a ledger in this process.
        """
        write = ConsumerWrite(
            consumer=instance.uuid,
            allocations=alternate.allocations,
            project_id=instance.project_id,
            user_id=instance.user_id,
            consumer_type=INSTANCE,
        )
        try:
            await self._placement.write_allocations([write])
        except (StorageError, LedgerError):
            raise
        except Exception as error:
            return result_of(error)
        return ClaimResult(Verdict.CLAIMED)

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
    reasons += refusals
    return f"Exceeded maximum number of retries after {len(faults)} attempts: " + "; ".join(reasons)
