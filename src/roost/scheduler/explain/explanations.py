"""The explanations in progress of one scheduler: started at a refusal, then awaited or recorded later."""

import asyncio
import contextlib

import structlog

from roost.model.reasons import Reasons
from roost.model.record import RecordSink, RunReasons
from roost.scheduler.gateways import Gateway
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import BOUND, WORK, Outcome

Explaining = asyncio.Task[Reasons | None]

_log = structlog.get_logger()


class Explanations:
    """Has refusals explained by the gateway that decided them.

    The records get the reasons in any case, whether or not the caller still waits for them.
    """

    def __init__(self, gateway: Gateway, records: RecordSink) -> None:
        self._gateway = gateway
        self._records = records
        self._under_way: dict[Explaining, float] = {}

    def begin(self, request: SchedulingRequest, outcome: Outcome) -> Explaining | None:
        """Start to explain why instances were not placed; None if all were, or if it cannot be explained.

        Call it while the table is being read.
        """
        seconds = request.options.explain_seconds
        out_of_time = outcome.cause == BOUND and request.expired()
        if outcome.refusal is None or not seconds or out_of_time or is_rebuild(request.spec):
            return None
        if outcome.cause == WORK:
            # Trying each change that might help would take as much work again.
            return None
        reading = contextlib.ExitStack()
        reading.enter_context(self._gateway.pools.table.reading())
        placed = len(outcome.destinations)
        task = asyncio.create_task(
            self._gateway.explain(request, placed, moves=request.options.explain_moves)
        )
        self._under_way[task] = seconds

        def ended(task: Explaining) -> None:
            reading.close()
            del self._under_way[task]
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("a refusal could not be explained", run=request.run, exc_info=error)
            if (reasons := reasons_of(task)) is not None:
                self._records.put([], [], [RunReasons(request.run, reasons)])

        task.add_done_callback(ended)
        return task

    async def wait(self, explaining: Explaining | None) -> Reasons | None:
        """Return the reasons, if they come in time."""
        if explaining is None:
            return None
        await asyncio.wait((explaining,), timeout=self._under_way.get(explaining))
        return reasons_of(explaining)


def reasons_of(explaining: Explaining) -> Reasons | None:
    """Return the reasons that an explanation has found; None if it has not ended, or failed."""
    done = explaining.done() and not explaining.cancelled() and explaining.exception() is None
    return explaining.result() if done else None


def refusal_reason(outcome: Outcome, reasons: Reasons | None, wanted: int) -> str:
    """Return the reason of a refusal in one sentence; without reasons the plain one of the run."""
    plain = outcome.refusal or ""
    if reasons is None:
        return plain
    return f"{plain}; by now {reasons.sentence}" if reasons.placed == wanted else reasons.sentence
