"""`HostJudge`: the verdict of the scheduler on each host for a request, without a claim or a record."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from roost.model.record import Attempt, Run, RunReasons
from roost.model.spec import RequestSpec
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.unclaimed import JudgingPools
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.pool.judged_pool import PoolJudgement
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.scheduling_request import HostRequest, new_run_id


class HostJudge:
    """Judges all hosts for one instance of a request.

    ``gateway``: one of `roost.scheduler.gateways.unclaimed`, with the pools ``pools``.
    """

    def __init__(
        self, gateway: Gateway, pools: JudgingPools, clock: Callable[[], float], words: OperatorWords | None
    ) -> None:
        self._pools = pools
        self._scheduler = Scheduler(gateway, _NoRecords(), clock, words=words)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def judgement(self, spec: RequestSpec, instance: str | None = None) -> PoolJudgement | None:
        """Return the verdicts on all hosts; None if the request has no pool of hosts, as that for a rebuild.

        ``instance``: its uuid; what it holds counts as free. None: a new one.

        Raises: as `Scheduler.select_destinations`, but `NoValidHost`.
        """
        if is_rebuild(spec):
            return None
        new = HostRequest.new(spec)
        instances = new.instances if instance is None else (instance,)
        run = new_run_id()
        lock = self._locks.setdefault(instances[0], asyncio.Lock())
        async with lock:
            with self._outstanding_again(instances[0]), suppress(NoValidHost):
                await self._scheduler.select_destinations(HostRequest(spec, instances, run=run, of_nova=True))
        return self._pools.judgement(run)

    @contextmanager
    def _outstanding_again(self, instance: str) -> Iterator[None]:
        """Count the outstanding claim of an instance again after the context, which ends it.

        A claim that was made in the context counts instead, and none on a node that has gone or whose report
        lists the instance.
        """
        table = self._pools.table
        before = table.outstanding.of(instance)
        node = None if before is None else table.nodes[before.index]
        try:
            yield
        finally:
            index = None if node is None else table.index_of_node(node)
            if before is not None and index is not None and table.outstanding.of(instance) is None:
                table.claim(instance, index, before.memory_mb, before.disk_mb, before.assignment)
                if not before.building:
                    table.built(instance)


class _NoRecords:
    """Records that are not kept; see `roost.model.record.RecordSink`."""

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Do nothing."""
