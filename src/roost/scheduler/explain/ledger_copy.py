"""A copy of the ledger and the node table in a forked process, on which refusals are explained.

The process starts with the first refusal and stays a while. It begins with the fleet and the node table of
the scheduler, and then receives each commit of the ledger and each event of the node table. Sending them
costs the event loop some microseconds a claim. A fork for each refusal would take 20 ms of it for a fleet of
10,000 trees, and such a process begins with cold caches. Without refusals there is no process, and nothing is
kept for one.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from roost.ledger import Ledger, LedgerError
from roost.model.node_event import NodeEvent
from roost.model.reasons import MoveSearch, Reasons
from roost.placement.queries.forked import ForkedError
from roost.placement.queries.forked_worker import ForkedWorker, Handler
from roost.placement.queries.turns import QUIET_SHARE, QueryPace, writer_busy
from roost.scheduler.explain.explainer import (
    MORE_BYTES,
    SECONDS,
    SHARE,
    Job,
    decode_reasons,
)
from roost.scheduler.explain.explanation import with_moves
from roost.scheduler.explain.following_copy import Copy, CopyMessage, MovesQuestion, Refused, encode_message
from roost.scheduler.explain.resident_reader import ResidentReader
from roost.scheduler.selection.host_pools import HostPools
from roost.storage import StorageError

MOST_WAITING: Final = 256
"""Refusals that wait for their reasons."""
IDLE_SECONDS: Final = 60.0
"""Seconds after the last refusal at which the process ends."""
TELLING_SECONDS: Final = 0.1
"""Seconds between two messages to the process, so that it has little to catch up with at the next refusal."""
MOST_CHARACTERS: Final = 32 * 1024 * 1024
"""Characters of commits that wait for a busy process. With more, it is ended."""
MOST_EVENTS: Final = 200_000
"""Events of the node table that wait for a busy process. With more, it is ended."""

_nodes: msgspec.msgpack.Decoder[list[str] | None] = msgspec.msgpack.Decoder(list[str] | None)
_moves: msgspec.msgpack.Decoder[MoveSearch | None] = msgspec.msgpack.Decoder(MoveSearch | None)

_log = structlog.get_logger()


class LedgerCopies:
    """Explains on copies of a ledger, of which one is kept at a time; see `Find`.

    ``residents``: reads the instances that may move; None: no moves are looked for.
    """

    def __init__(self, ledger: Ledger, pools: HostPools, residents: ResidentReader | None = None) -> None:
        self._ledger = ledger
        self._pools = pools
        self._residents = residents
        self._process: _Process | None = None
        self._pacing = QueryPace()

    async def find(self, job: Job) -> Reasons | None:
        """Return why a request is refused. Raises: as `ForkedWorker.ask`, `StorageError`, `LedgerError`."""
        if job.newest:
            await self._ledger.current()
        process = await self._running_process()
        reasons = await process.explain(job)
        if reasons is None or reasons.left or not job.moves or self._residents is None:
            return reasons
        try:
            found = await self._moves(process, job)
        except (StorageError, LedgerError, ForkedError) as error:
            # The reasons are there, and stand without the moves.
            _log.warning("moves for a refused request were not looked for", error=str(error))
            return reasons
        return reasons if found is None else with_moves(reasons, found)

    async def _moves(self, process: "_Process", job: Job) -> MoveSearch | None:
        """Return the moves that make a request fit; None if they were not looked for."""
        nodes = await process.nodes_to_empty(job)
        if not nodes or self._residents is None:
            return None
        indexes = [index for node in nodes if (index := self._pools.table.index_of_node(node)) is not None]
        read = await self._residents.on(indexes)
        # The copy must have all that was read.
        await self._ledger.current()
        question = MovesQuestion(job.moves, tuple(nodes), read.instances)
        found = await process.moves(job, question)
        if found is None:
            return None
        complete = found.complete and read.complete
        return msgspec.structs.replace(found, fixed=read.fixed, complete=complete)

    async def _running_process(self) -> "_Process":
        process = self._process
        if process is None or not process.is_current():
            if process is not None:
                process.close()
            await asyncio.sleep(self._pacing.wait(time.monotonic(), self._share()))
            process = self._process = _Process(self._ledger, self._pools)
            self._pacing = self._pacing.spent(time.monotonic(), process.forking, self._share())
        return process

    def _share(self) -> float:
        ledger = self._ledger
        busy = writer_busy(time.monotonic(), ledger.last_command, ledger.waiting_commands)
        return SHARE if busy else QUIET_SHARE


def _stand_ins(job: Job) -> dict[str, str]:
    """Return a new consumer for each instance that holds something, to claim in its place on the copy.

    A copy does not know what single consumers hold, so the instance cannot claim there once more. It counts
    as the holder of its present host, which in a server group is the same member.
    """
    request = job.request
    return {
        each: str(uuid.uuid4())
        for each in request.instances[job.placed :]
        if request.generation_of(each) is not None and each not in request.held_by
    }


class _Process:
    """The process that explains the refusals of one scheduler, and the changes to send to it."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        """Start the process on the present state. Raises: `ForkedUnavailable`."""
        self._table = pools.table
        self._asked_at = time.monotonic()

        def begin() -> Handler:
            return Copy(ledger.known(), pools).handle

        self._worker = ForkedWorker(begin, MORE_BYTES, SECONDS)
        self._commits = ledger.tap()
        self._events = pools.table.listen()
        self._telling = asyncio.create_task(self._tell())
        self._telling.add_done_callback(lambda _: self._let_go())

    @property
    def forking(self) -> float:
        """The seconds for which the fork kept the event loop."""
        return self._worker.forking

    def is_current(self) -> bool:
        """Return whether the process runs and has all changes since its start."""
        return not (self._telling.done() or self._worker.ended or self._commits.broken)

    async def explain(self, job: Job) -> Reasons | None:
        """Return the reasons of a refusal, on the present state. Raises: as `ForkedWorker.ask`."""
        return decode_reasons(await self._ask(job))

    async def nodes_to_empty(self, job: Job) -> list[str] | None:
        """Return the nodes from which moves may make room for a refused request, by root provider, nearest
        first. Raises: as `ForkedWorker.ask`."""
        return _nodes.decode(await self._ask(job, MovesQuestion(job.moves)))

    async def moves(self, job: Job, question: MovesQuestion) -> MoveSearch | None:
        """Return the moves that make a refused request fit. Raises: as `ForkedWorker.ask`."""
        return _moves.decode(await self._ask(job, question))

    async def _ask(self, job: Job, moves: MovesQuestion | None = None) -> bytes:
        request = job.request
        self._asked_at = time.monotonic()

        def message() -> bytes:
            # Services found to be down or up again here become events.
            self._table.seen_since(request.oldest_heartbeat)
            stand_ins = _stand_ins(job)
            refused = Refused(
                spec=request.spec,
                instances=tuple(stand_ins.get(each, each) for each in request.instances),
                min_count=request.min_count,
                now=request.now,
                seed=request.seed,
                placed=job.placed,
                silent=self._table.silent(),
                held_by={**request.held_by, **{each: instance for instance, each in stand_ins.items()}},
            )
            return self._message(refused, moves)

        return await self._worker.ask(message, SECONDS)

    def close(self) -> None:
        """End the process."""
        self._telling.cancel()

    def _message(self, refused: Refused | None = None, moves: MovesQuestion | None = None) -> bytes:
        events: Sequence[NodeEvent] = [*self._events]
        self._events.clear()
        return encode_message(CopyMessage(self._commits.take(), events, self._table.version, refused, moves))

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
                except ForkedError as error:
                    _log.warning("the process that explains refusals has ended", error=str(error))

    def _let_go(self) -> None:
        self._worker.close()
        self._commits.close()
        self._table.ignore(self._events)
