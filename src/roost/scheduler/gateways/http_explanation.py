"""Explains refusals of a placement service over HTTP on what it answers to the request.

The answers are read anew, as in a run. A forked process explains on them, with the node table as it is then:
it may claim in its memory, and its work does not hold the event loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

import msgspec
from msgspec.structs import replace

from roost.model.reasons import Reasons
from roost.placement.queries.forked import run_forked
from roost.placement.queries.turns import QueryPace
from roost.scheduler.candidates.fetched_candidates import CachedAnswers
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.answer_snapshot import AnswerSnapshot, PlacementAnswers
from roost.scheduler.explain.explainer import MORE_BYTES, SECONDS, SECONDS_TRYING, SHARE, Job, decode_reasons
from roost.scheduler.explain.explanation import explain
from roost.scheduler.explain.survey import TimeLimit
from roost.scheduler.gateways.foreign_groups import Members, Sleep, look_for_members
from roost.scheduler.gateways.http_run import AskedCandidates
from roost.scheduler.gateways.missing_providers import filling, nodes_without_provider
from roost.scheduler.gateways.node_assignments import assignments_for
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.request.request_filters.table_filters import segments_of
from roost.scheduler.selection.host_pools import HostPools

MOST_WAITING = 16
"""Refusals that wait for their reasons."""
SECONDS_READING = 2.0
"""Seconds after which no further candidates are read for one explanation."""

Aggregates = Callable[[Collection[str]], Awaitable[Mapping[str, frozenset[str]]]]
"""Returns the aggregates of each of some providers."""

_encode = msgspec.msgpack.Encoder().encode


class HttpExplanations:
    """Explains on answers of placement; see `roost.scheduler.explain.explainer.Find`.

    ``members``, ``sleep`` and ``aggregates``: as of the gateway.
    """

    def __init__(
        self,
        placement: RunPlacement,
        pools: HostPools,
        members: Members,
        sleep: Sleep,
        aggregates: Aggregates,
    ) -> None:
        self._pools = pools
        self._placement = placement
        self._members = members
        self._sleep = sleep
        self._aggregates = aggregates
        self._pacing = QueryPace()

    async def find(self, job: Job) -> Reasons | None:
        """Return why a request is refused. Raises: as a run, and as `run_forked`."""
        options = replace(job.request.options, host_list_seconds=0.0)
        job = job._replace(request=replace(job.request, options=options))
        candidates = AskedCandidates(self._placement, job.request, self._pools.table, CachedAnswers())
        time_limit = TimeLimit(SECONDS_READING)
        snapshot = await self._snapshot(job, candidates)
        complete = True
        while not snapshot.serves(job.request):
            complete = not time_limit.over()
            if not complete or not await candidates.read_on():
                break
            snapshot = await self._snapshot(job, candidates)
        await asyncio.sleep(self._pacing.wait(time.monotonic(), SHARE))
        answered = partial(_explained, snapshot, job)
        reasons = decode_reasons(await run_forked(answered, SECONDS, MORE_BYTES, self._forked))
        if reasons is None or reasons.placed == len(job.request.instances):
            return reasons
        reasons = replace(reasons, complete=complete and reasons.complete)
        if not candidates.known:
            missing, nodes = await nodes_without_provider(self._placement, self._pools.table)
            if missing:
                return replace(reasons, sentence=filling(missing, nodes), public="no host is there")
        if candidates.bound is not None:
            more = f"more candidates are not read: {candidates.bound} is met"
            return replace(reasons, sentence=f"{reasons.sentence}; {more}")
        return reasons

    async def _snapshot(self, job: Job, candidates: AskedCandidates) -> AnswerSnapshot:
        """Return the snapshot of the candidates that are read, and of what belongs to them."""
        request, pools, placement = job.request, self._pools, self._placement
        found = await candidates.fetched()
        members, _ = await look_for_members(placement, request.spec.group, self._members, self._sleep)
        assigned = await assignments_for(placement, request, pools, found.index)
        aggregates = await self._aggregates(segments_of(request.spec, request.options))
        answers = PlacementAnswers(found, assigned.on, members, aggregates)
        return AnswerSnapshot(request, answers, pools)

    def _forked(self, seconds: float) -> None:
        self._pacing = self._pacing.spent(time.monotonic(), seconds, SHARE)


def _explained(snapshot: AnswerSnapshot, job: Job) -> bytes:
    """Return the reasons, encoded. For a forked process."""
    try:
        found = explain(snapshot, job.request, placed=job.placed, seconds=SECONDS_TRYING)
    except SchedulerError:
        # A plugin fails on the present state. The run itself was refused without a fault.
        found = None
    return _encode(found)
