"""Explains refusals in a process beside the scheduler's, which starts with the first refusal and stays a
while.

The process is forked, and then receives each commit and each event of the node table: see
`roost.scheduler.explain.copy`. Sending them costs the event loop some microseconds a claim. A fork for each
refusal would take 20 ms of it for a fleet of 10,000 trees, and such a process begins with cold caches.
Without refusals there is no process, and nothing is kept for one.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import structlog

from roost.ledger import Ledger, LedgerError
from roost.model.node_event import NodeEvent
from roost.model.reasons import Reasons
from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
)
from roost.placement.queries.forked_worker import ForkedWorker, Handler
from roost.placement.queries.query_pace import QUIET_SHARE, QueryPace, writer_busy
from roost.process.logs.outages import OutageLines
from roost.process.metrics import catalogue as metrics
from roost.scheduler.explain.copy import Copy, CopyMessage, Refused, decode_answer, encode_message
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.selection import Plugins
from roost.storage import StorageError

MOST_WAITING: Final = 256
"""Refusals that wait for their reasons. Further ones are not explained."""
SECONDS: Final = 10.0
"""Timeout of one explanation in seconds, catch-up included."""
MORE_BYTES: Final = 512 * 2**20
"""Memory in bytes that a process may take in addition to what it shares."""
SHARE: Final = 0.03
"""Share of the event loop's time that forks may take while claims arrive.

Copying pages after a fork costs the writer some time as well.
"""
IDLE_SECONDS: Final = 60.0
"""Seconds after the last refusal at which the process ends."""
TELLING_SECONDS: Final = 0.1
"""Seconds between two messages to the process, so that it has little to catch up with at the next refusal."""
MOST_CHARACTERS: Final = 32 * 1024 * 1024
"""Characters of commits that wait for a busy process. With more, it is ended."""
MOST_EVENTS: Final = 200_000
"""Events of the node table that wait for a busy process. With more, it is ended."""

_FAILURES: Final = (ForkedFailed, ForkedTooLarge, ForkedTooLong, ForkedUnavailable)

_log = structlog.get_logger()
_encode = msgspec.msgpack.Encoder().encode


class Job(NamedTuple):
    """A refused request to explain.

    ``placed``: so many of its first instances hold their hosts. ``newest``: explain it on the newest version
    that any writer has made.
    """

    request: SchedulingRequest
    table: NodeTable
    plugins: Plugins
    placed: int
    newest: bool = False

    def same(self) -> bytes:
        """Return a key that is equal for refusals with equal reasons."""
        request = self.request
        number, least = len(request.instances), request.min_count
        return _encode((request.spec, request.queries, number, least, self.placed, self.newest))


class Explainer:
    """Explains the refusals of one process on its ledger. For use from one event loop."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: dict[bytes, list[tuple[Job, asyncio.Future[Reasons | None]]]] = {}
        self._number = 0
        self._working: asyncio.Task[None] | None = None
        self._away = OutageLines(
            __name__, "a refusal is not explained", "refusals are explained again", level="warning"
        )
        self._process: _Process | None = None
        self._pacing = QueryPace()

    async def explain(self, job: Job) -> Reasons | None:
        """Return why a request is refused; None if too many wait, or if it cannot be found out."""
        if self._number >= MOST_WAITING:
            metrics.EXPLANATIONS.labels("dropped").inc()
            return None
        answer: asyncio.Future[Reasons | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job.same(), []).append((job, answer))
        self._number += 1
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                same = self._waiting.pop(next(iter(self._waiting)))
                self._number -= len(same)
                reasons = await self._explained(same[0][0])
                for _, answer in same:
                    metrics.EXPLANATIONS.labels("failed" if reasons is None else "explained").inc()
                    if not answer.done():
                        answer.set_result(reasons)
        finally:
            self._working = None

    async def _explained(self, job: Job) -> Reasons | None:
        try:
            if job.newest:
                await self._ledger.current()
            process = await self._process_for(job)
            reasons = await process.explain(job)
            self._away.succeeded()
            return reasons
        except _FAILURES as error:
            self._away.failed(error=str(error))
        except (StorageError, LedgerError) as error:
            self._away.failed(error=f"the ledger cannot be read: {error}")
        return None

    async def _process_for(self, job: Job) -> "_Process":
        process = self._process
        if process is None or not process.serves(job):
            if process is not None:
                process.close()
            await asyncio.sleep(self._pacing.wait(time.monotonic(), self._share()))
            process = self._process = _Process(self._ledger, job)
            self._pacing = self._pacing.spent(time.monotonic(), process.forking, self._share())
        return process

    def _share(self) -> float:
        ledger = self._ledger
        busy = writer_busy(time.monotonic(), ledger.last_command, ledger.waiting_commands)
        return SHARE if busy else QUIET_SHARE


class _Process:
    """The process that explains the refusals of one scheduler, and the changes to send to it."""

    def __init__(self, ledger: Ledger, job: Job) -> None:
        """Start the process on the present state. Raises: `ForkedUnavailable`."""
        self._table, self._plugins = job.table, job.plugins
        self._options: SchedulerOptions = job.request.options
        self._asked_at = time.monotonic()

        def begin() -> Handler:
            return Copy(ledger.known(), job.table, job.plugins, job.request.options).handle

        self._worker = ForkedWorker(begin, MORE_BYTES, SECONDS)
        self._commits = ledger.tap()
        self._events = job.table.listen()
        self._telling = asyncio.create_task(self._tell())
        self._telling.add_done_callback(lambda _: self._let_go())

    @property
    def forking(self) -> float:
        """The seconds for which the fork kept the event loop."""
        return self._worker.forking

    def serves(self, job: Job) -> bool:
        """Return whether the process runs, belongs to the scheduler of the job, and has all changes since its
        start."""
        return (
            not self._telling.done()
            and not self._worker.ended
            and not self._commits.broken
            and job.table is self._table
            and job.plugins is self._plugins
            and job.request.options is self._options
        )

    async def explain(self, job: Job) -> Reasons | None:
        """Return the reasons of a refusal, on the present state. Raises: as `ForkedWorker.ask`."""
        request = job.request
        self._asked_at = time.monotonic()

        def message() -> bytes:
            # Services found to be down or up again here become events.
            self._table.seen_since(request.oldest_heartbeat)
            refused = Refused(
                spec=request.spec,
                instances=request.instances,
                min_count=request.min_count,
                now=request.now,
                seed=request.seed,
                placed=job.placed,
                silent=self._table.silent(),
            )
            return self._message(refused)

        return decode_answer(await self._worker.ask(message, SECONDS))

    def close(self) -> None:
        """End the process."""
        self._telling.cancel()

    def _message(self, refused: Refused | None = None) -> bytes:
        events: Sequence[NodeEvent] = [*self._events]
        self._events.clear()
        return encode_message(CopyMessage(self._commits.take(), events, self._table.version, refused))

    async def _tell(self) -> None:
        """Send the process its messages, until it has ended or is needed no longer."""
        while not self._worker.ended and not self._commits.broken:
            await asyncio.sleep(TELLING_SECONDS)
            if self._worker.busy:
                if self._commits.characters > MOST_CHARACTERS or len(self._events) > MOST_EVENTS:
                    _log.warning("the process that explains refusals cannot keep up, and is ended")
                    return
            elif time.monotonic() - self._asked_at > IDLE_SECONDS:
                return
            elif self._commits.characters or self._events:
                try:
                    await self._worker.tell(self._message)
                except _FAILURES as error:
                    _log.warning("the process that explains refusals has ended", error=str(error))

    def _let_go(self) -> None:
        self._worker.close()
        self._commits.close()
        self._table.ignore(self._events)
