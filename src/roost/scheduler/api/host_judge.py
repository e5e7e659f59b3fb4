"""`HostJudge`: the verdict of the scheduler on each host for a request, without a claim or a record."""

from collections.abc import Callable, Sequence
from contextlib import suppress

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
        with suppress(NoValidHost):
            await self._scheduler.select_destinations(HostRequest(spec, instances, run=run, of_nova=True))
        return self._pools.judgement(run)


class _NoRecords:
    """Records that are not kept; see `roost.model.record.RecordSink`."""

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Do nothing."""
