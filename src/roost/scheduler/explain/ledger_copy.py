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

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.ledger.feed import Commit, decode_changes
from roost.model.node_event import NodeEvent
from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec
from roost.placement.queries.forked_worker import ForkedWorker, Handler
from roost.placement.queries.turns import QUIET_SHARE, QueryPace, writer_busy
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.explainer import (
    FORK_FAILURES,
    MORE_BYTES,
    SECONDS,
    SECONDS_TRYING,
    SHARE,
    Job,
    decode_reasons,
)
from roost.scheduler.explain.explanation import explain
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

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

_log = structlog.get_logger()


class LedgerCopies:
    """Explains on copies of a ledger, of which one is kept at a time; see `Find`."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        self._ledger = ledger
        self._pools = pools
        self._process: _Process | None = None
        self._pacing = QueryPace()

    async def find(self, job: Job) -> Reasons | None:
        """Return why a request is refused. Raises: as `ForkedWorker.ask`, `StorageError`, `LedgerError`."""
        if job.newest:
            await self._ledger.current()
        process = await self._running_process()
        return await process.explain(job)

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


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """A refused request: the parts of its `SchedulingRequest` that are not made anew from the copy's state.

    ``placed``: so many of the first instances hold their hosts. ``silent``: see `NodeTable.silent`.
    """

    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int
    now: float
    seed: int
    placed: int
    silent: dict[str, float]
    held_by: dict[str, str] = {}


class CopyMessage(msgspec.Struct, frozen=True, array_like=True):
    """The commits and events since the last message, and a refused request to explain after them.

    ``node_version``: of the node table after the events.
    """

    commits: Sequence[Commit]
    events: Sequence[NodeEvent]
    node_version: int | None
    refused: Refused | None = None


encode_message = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CopyMessage).decode
_encode = msgspec.msgpack.Encoder().encode


class Copy:
    """The copy, and its answers to messages. Fleet and table must belong to nobody else."""

    def __init__(self, fleet: Fleet, pools: HostPools) -> None:
        self.fleet = fleet
        self.table = pools.table
        self._pools = pools
        self.table.become_copy()

    def handle(self, message: bytes) -> bytes | None:
        """Apply a message and explain its refused request, if any. Raises if the state is not the
        scheduler's."""
        received = _decode(message)
        for commit in received.commits:
            self.fleet.advance(commit.seq, decode_changes(commit.changes), commit.at)
        for event in received.events:
            self.table.apply(event)
        self.table.version = received.node_version
        return None if received.refused is None else _encode(self._reasons(received.refused))

    def _reasons(self, refused: Refused) -> Reasons | None:
        options, spec = self._pools.options, refused.spec
        snapshot = FleetSnapshot(self.fleet, self._pools)
        self.table.set_silent(refused.silent)
        try:
            asked = HostRequest(spec, refused.instances, 0, refused.min_count, held_by=refused.held_by)
            queries = snapshot.queries(spec, options)
            request = SchedulingRequest.of(asked, queries, options, refused.now, seed=refused.seed)
            return explain(snapshot, request, placed=refused.placed, seconds=SECONDS_TRYING)
        except SchedulerError:
            # A plugin fails on the present state. The run itself was refused without a fault.
            return None


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
            return self._message(refused)

        return decode_reasons(await self._worker.ask(message, SECONDS))

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
                except FORK_FAILURES as error:
                    _log.warning("the process that explains refusals has ended", error=str(error))

    def _let_go(self) -> None:
        self._worker.close()
        self._commits.close()
        self._table.ignore(self._events)
