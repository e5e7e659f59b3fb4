"""Explains refusals in forked processes, beside the ledger's writer and bounded in number and time.

A fork has the fleet and the node table as they are, takes milliseconds of the event loop, and may change both
at will: the operating system copies what it writes. See `roost.placement.queries.forked`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from roost.fleet import Fleet
from roost.ledger import Ledger, LedgerError
from roost.metrics import catalogue as metrics
from roost.model.reasons import Reasons
from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
    run_forked,
)
from roost.placement.queries.pacing import QUIET_SHARE, Pacing, writer_busy
from roost.scheduler.errors import SchedulerError
from roost.scheduler.nodes import NodeTable
from roost.scheduler.question import Question
from roost.scheduler.reasons.explained import explained
from roost.scheduler.selection import Plugins
from roost.storage import StorageError

MOST_WAITING: Final = 256
"""Refusals that wait for their reasons. Further ones are not explained."""
MOST_AT_ONCE: Final = 32
"""Refusals that one process explains."""
SECONDS: Final = 10.0
"""For which a process may run."""
SECONDS_EACH: Final = 2.0
"""After which no further changes of one request are tried."""
MORE_BYTES: Final = 512 * 2**20
"""Memory that a process may take beside what it shares."""
SHARE: Final = 0.03
"""Of the event loop's time, which forks may take while claims arrive. The pages that are copied after a fork
cost the writer some time as well."""

_log = structlog.get_logger()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Reasons | None]).decode


class Job(NamedTuple):
    """A refused question. ``placed``: so many of its first instances hold their hosts."""

    question: Question
    table: NodeTable
    plugins: Plugins
    placed: int


class Explainer:
    """Explains the refusals of one process.

    ``current`` gives the fleet at the head, ``busy`` whether the ledger's writer has commands. For use from
    one event loop.
    """

    def __init__(self, current: Callable[[], Awaitable[Fleet]], busy: Callable[[], bool]) -> None:
        self._current = current
        self._busy = busy
        self._waiting: list[tuple[Job, asyncio.Future[Reasons | None]]] = []
        self._working: asyncio.Task[None] | None = None
        self._pacing = Pacing()

    @classmethod
    def of_ledger(cls, ledger: Ledger) -> "Explainer":
        """An explainer of decisions in a ledger."""

        def busy() -> bool:
            return writer_busy(time.monotonic(), ledger.last_command, ledger.waiting_commands)

        return cls(ledger.current, busy)

    async def explain(self, job: Job) -> Reasons | None:
        """Why a question is refused; None if too many wait, or if it cannot be found out."""
        if len(self._waiting) >= MOST_WAITING:
            metrics.EXPLANATIONS.labels("dropped").inc()
            return None
        answer: asyncio.Future[Reasons | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, answer))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(self._pacing.wait(time.monotonic(), self._share()))
                batch = self._waiting[:MOST_AT_ONCE]
                del self._waiting[:MOST_AT_ONCE]
                found = await self._explained([job for job, _ in batch])
                for (_, answer), reasons in zip(batch, found, strict=True):
                    metrics.EXPLANATIONS.labels("failed" if reasons is None else "explained").inc()
                    if not answer.done():
                        answer.set_result(reasons)
        finally:
            self._working = None

    async def _explained(self, jobs: Sequence[Job]) -> Sequence[Reasons | None]:
        try:
            fleet = await self._current()
            found = await run_forked(partial(explain_all, fleet, jobs), SECONDS, MORE_BYTES, self._forked)
            return _decode(found)
        except (ForkedFailed, ForkedTooLarge, ForkedTooLong, ForkedUnavailable) as error:
            _log.warning("refusals are not explained", refusals=len(jobs), error=str(error))
        except (StorageError, LedgerError) as error:
            _log.warning("refusals are not explained: the ledger cannot be read", error=str(error))
        return [None] * len(jobs)

    def _forked(self, seconds: float) -> None:
        self._pacing = self._pacing.spent(time.monotonic(), seconds, self._share())

    def _share(self) -> float:
        return SHARE if self._busy() else QUIET_SHARE


def explain_all(fleet: Fleet, jobs: Sequence[Job]) -> bytes:
    """The reasons of some refusals, encoded; equal requests are explained once. For a forked process."""
    known: dict[bytes, Reasons | None] = {}
    found = []
    for job in jobs:
        question = job.question
        same = (question.spec, question.queries, len(question.instances), question.min_count, job.placed)
        key = _encode(same)
        if key not in known:
            known[key] = _reasons(fleet, job)
        found.append(known[key])
    return _encode(found)


def _reasons(fleet: Fleet, job: Job) -> Reasons | None:
    try:
        return explained(fleet, job.question, job.table, job.plugins, placed=job.placed, seconds=SECONDS_EACH)
    except SchedulerError:
        # A plugin fails on the state as it is now. The run itself has been refused without a fault.
        return None
