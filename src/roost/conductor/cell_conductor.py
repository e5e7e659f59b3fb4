"""The conductor of one cell: has failed builds moved to alternates, frees what was destroyed.

It needs its cell, placement, and of the scheduler the use of alternates: no other cell.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec
import structlog

from roost.cells import Cell
from roost.cells.cell import changed
from roost.conductor.backoff import Backoff
from roost.conductor.together import together
from roost.ledger import LedgerError
from roost.logs import RequestIds, serving
from roost.metrics import catalogue as metrics
from roost.model.instance import ABANDONED, DESTROYED, FAILED, Fault, Instance
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.record import RecordSink, end_of
from roost.model.spec import Flavor, RequestSpec, Selection
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.scheduler.claim_result import Verdict, one_line, result_of
from roost.scheduler.errors import NoAlternate, SchedulerError
from roost.scheduler.replacement import Replacement
from roost.storage import StorageError

_log = structlog.get_logger()


class Alternates(Protocol):
    """The use of alternates; `roost.scheduler.Scheduler` is one."""

    async def use_alternate(
        self,
        spec: RequestSpec,
        instance: str,
        failed: Selection,
        reason: str,
        alternates: Sequence[Selection],
        *,
        run: str,
        request_id: str,
    ) -> Replacement:
        """As `roost.scheduler.Scheduler.use_alternate` says."""


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
        alternates: Alternates,
        records: RecordSink,
        *,
        poll_seconds: float = 1.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cell = cell
        self._placement = placement
        self._alternates = alternates
        self._records = records
        self._poll_seconds = poll_seconds
        self._backoff = backoff
        self._clock = clock
        self._monotonic = monotonic
        self._postponed: dict[str, _Postponed] = {}
        self._wake = cell.listen(FAILED, ABANDONED, DESTROYED)

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
        waiting = await self._cell.in_state(FAILED, ABANDONED, DESTROYED)
        failed = [instance for instance in waiting if instance.state == FAILED]
        abandoned = [instance.uuid for instance in waiting if instance.state == ABANDONED]
        destroyed = [instance.uuid for instance in waiting if instance.state == DESTROYED]
        postponed = {each.uuid: self._postponed[each.uuid] for each in failed if each.uuid in self._postponed}
        self._postponed = postponed
        now = self._monotonic()
        due = [each for each in failed if each.uuid not in postponed or postponed[each.uuid].due <= now]
        if due:
            await together(self._move(instance) for instance in due)
        if abandoned:
            await self._free(abandoned)
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
        postponed = self._postponed.get(instance.uuid)
        if postponed is not None and self._backoff.exhausted(postponed.failures):
            self._record_failure(instance)
            return await self._give_up(instance, [postponed.reason])
        try:
            found = await self._alternates.use_alternate(
                _spec_of(instance),
                instance.uuid,
                self._claimed(instance),
                instance.reason or "",
                instance.alternates,
                run=instance.run,
                request_id=instance.request_id,
            )
        except NoAlternate as none:
            metrics.MOVES.labels("refused").inc(len(none.tries))
            refusals = [f"alternate {each.host}: {each.refusal}" for each in none.tries]
            return await self._give_up(instance, refusals or ["no alternate is left"])
        except (SchedulerError, PlacementError) as error:
            result = result_of(error)
            if result.verdict is Verdict.RETRY:
                raise
            self._record_failure(instance)
            return await self._give_up(instance, [result.reason or ""])
        assert found.selected is not None
        metrics.MOVES.labels("refused").inc(len(found.tries) - 1)
        metrics.MOVES.labels("moved").inc()
        await self._cell.reassign(instance.uuid, instance.attempt, found.selected, found.alternates)
        self._postponed.pop(instance.uuid, None)
        return None

    async def _give_up(self, instance: Instance, refusals: Sequence[str]) -> None:
        """Make no further attempt: free the instance's claim and put it in error, with all reasons."""
        faults = await self._cell.faults_of(instance.uuid)
        await self._cell.abandon(instance.uuid, instance.attempt, _all_reasons(faults, refusals))
        metrics.MOVES.labels("given_up").inc()
        # If it is deleted, or another conductor has moved it, its claim is not this one's to free.
        there = await self._cell.find([instance.uuid])
        if there and there[instance.uuid].state == ABANDONED:
            await self._free([instance.uuid])

    async def _free(self, abandoned: Sequence[str]) -> None:
        """Free the claims of instances for which no further attempt is made."""
        await self._placement.delete_allocations(abandoned)
        await self._cell.give_up(abandoned)

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
        known = isinstance(error, StorageError | LedgerError | PlacementError | SchedulerError)
        _log.warning(
            event,
            cell=self._cell.name,
            error=one_line(error),
            failures=failures,
            exc_info=failures == 1 and not known,
            **values,
        )

    def _claimed(self, instance: Instance) -> Selection:
        """What is claimed for an instance, as far as its row says."""
        claimed = instance.selection
        if claimed is not None:
            # A selection that an earlier version stored has no ordinal.
            return msgspec.structs.replace(claimed, ordinal=claimed.ordinal or instance.attempt)
        return Selection(instance.host or "", instance.node or "", self._cell.name, {}, {}, 0.0)

    def _record_failure(self, instance: Instance) -> None:
        """Record an attempt whose end nobody else records."""
        attempt = end_of(
            self._claimed(instance),
            BUILD_FAILED,
            self._clock(),
            run=instance.run,
            request_id=instance.request_id,
            instance=instance.uuid,
            reason=instance.reason or "",
        )
        self._records.put([], [attempt])


def _spec_of(instance: Instance) -> RequestSpec:
    """The request spec of an instance; of one that was stored without, what its row says of the request."""
    if instance.spec is not None:
        return instance.spec
    claimed = instance.alternates[0].allocations if instance.alternates else {}
    amounts: dict[str, int] = {}
    for resources in claimed.values():
        for name, amount in resources.items():
            amounts[name] = amounts.get(name, 0) + amount
    wanted = {f"resources:{name}": str(amount) for name, amount in amounts.items()}
    flavor = Flavor(instance.flavor, 0, 0, extra_specs=wanted)
    return RequestSpec(project_id=instance.project_id, user_id=instance.user_id, flavor=flavor)


def _all_reasons(faults: Sequence[Fault], refusals: Sequence[str]) -> str:
    reasons = [f"attempt {fault.attempt} on {fault.host}: {fault.reason}" for fault in faults]
    reasons += refusals
    return f"Exceeded maximum number of retries after {len(faults)} attempts: " + "; ".join(reasons)
