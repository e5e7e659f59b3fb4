"""`select_destinations`: the scheduler's one service."""

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from roost.model.record import CLAIMED, REFUSED, Attempt, Run
from roost.model.spec import Destination, RequestSpec
from roost.records.redact import redacted
from roost.scheduler import plugins as found
from roost.scheduler.errors import NoValidHost
from roost.scheduler.gateways import Decided, Gateway
from roost.scheduler.hosts import HostTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.query import candidate_query
from roost.scheduler.question import Question
from roost.scheduler.selection import Plugins


class RunSink(Protocol):
    """Where records of runs go; `roost.records.Records` is one."""

    async def write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Keep the records, durably."""


class Scheduler:
    """Chooses hosts and claims them.

    Args:
        gateway: how placement is reached.
        table: the host table, which its owner keeps up to date.
        records: where each run is recorded.
        options: filters, weighers and the rest.
        clock: seconds since the epoch.

    Example:
        >>> async def place(scheduler, spec):
        ...     for destination in await scheduler.select_destinations(spec, count=2, num_alternates=2):
        ...         print(destination.selected.host, [other.host for other in destination.alternates])
    """

    def __init__(
        self,
        gateway: Gateway,
        table: HostTable,
        records: RunSink,
        options: SchedulerOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.table = table
        self._gateway = gateway
        self._records = records
        self._options = options or SchedulerOptions()
        self._clock = clock
        self._plugins = Plugins(found.filters(self._options.filters), found.weighers(self._options.weighers))

    async def select_destinations(
        self,
        spec: RequestSpec,
        count: int,
        num_alternates: int = 0,
        *,
        instances: Sequence[str] | None = None,
        min_count: int | None = None,
        request_id: str | None = None,
    ) -> tuple[Destination, ...]:
        """Choose and claim hosts for ``count`` equal instances.

        Args:
            instances: consumer uuids, ``count`` of them; made up if not given.
            min_count: at least so many must be placed, else none is; ``count`` if not given.
            request_id: of the user's request, for the records.

        Returns a destination for each instance that was placed, in order; its selected host is claimed,
        its alternates (in the same cell) are not. Raises `NoValidHost` if too few can be placed, and
        `BadRequestSpec`.
        """
        if instances is None:
            instances = [str(uuid.uuid4()) for _ in range(count)]
        if len(instances) != count or count < 1:
            raise ValueError(f"{len(instances)} instances named, {count} wanted")
        started = self._clock()
        question = Question(
            run=str(uuid.uuid4()),
            spec=spec,
            query=candidate_query(spec, self.table, self._options),
            instances=tuple(instances),
            num_alternates=num_alternates,
            min_count=count if min_count is None else min_count,
            now=started,
            options=self._options,
        )
        decided = await self._gateway.decide(question, self.table, self._plugins)
        await self._record(question, decided, request_id or f"req-{uuid.uuid4()}", started)
        outcome = decided.outcome
        if not outcome.destinations:
            raise NoValidHost(question.run, outcome.refusal or "", outcome.steps, outcome.tries)
        return outcome.destinations

    async def _record(self, question: Question, decided: Decided, request_id: str, started: float) -> None:
        outcome = decided.outcome
        finished = self._clock()
        run = Run(
            id=question.run,
            request_id=request_id,
            project_id=question.spec.project_id,
            user_id=question.spec.user_id,
            instances=question.instances,
            spec=redacted(question.spec),
            started_at=started,
            finished_at=finished,
            version=decided.version,
            steps=outcome.steps,
            refusal=outcome.refusal,
        )
        attempts = [
            Attempt(
                run=run.id,
                request_id=request_id,
                instance=tried.instance,
                at=finished,
                host=tried.host,
                cell=tried.cell,
                weight=tried.weight,
                result=CLAIMED if tried.refusal is None else REFUSED,
                reason=tried.refusal,
            )
            for tried in outcome.tries
        ]
        await self._records.write([run], attempts)
