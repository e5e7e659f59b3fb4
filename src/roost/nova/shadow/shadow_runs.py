"""The runs of shadow mode: each call is decided without a claim, then compared with Nova's claim."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from roost.ledger import Held, LedgerError
from roost.model.spec import RequestSpec
from roost.nova.calls import SelectCall
from roost.nova.instance_facts import InstanceSource
from roost.nova.shadow.comparison import Comparison, RoostDecision, compared
from roost.nova.shadow.comparison_store import ComparisonStore
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.process.metrics import nova_bridge as metrics
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.api.wire.language import NovaLanguage
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.gateways.unclaimed import MOST_JUDGED, JudgingPools
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.scheduling_request import HostRequest, new_run_id
from roost.storage import StorageError

FIRST_PAUSE: Final = 0.25
"""Seconds before the first look for a claim; each later pause is half as long again."""

LONGEST_PAUSE: Final = 5.0
"""Most seconds between two looks for a claim."""

MOST_WAITING: Final = MOST_JUDGED
"""Calls that are decided or wait for Nova's claim at a time. Further ones are counted as dropped."""

_log = structlog.get_logger()


class ShadowOptions(msgspec.Struct, frozen=True):
    """The options of shadow runs.

    ``wait_seconds``: time from a call to Nova's claim, after which Nova counts as having refused it.
    ``drawn_from``: the number of best hosts that the scheduler draws from (``host_subset_size``).
    """

    wait_seconds: float = 60.0
    drawn_from: int = 1


class ShadowRuns:
    """Decides copies of Nova's calls, and stores the comparisons.

    ``scheduler`` decides by a gateway of `roost.scheduler.gateways.unclaimed` with the pools ``pools``.
    ``placement`` has Nova's claims. ``refresh`` and ``filled``: as of `roost.nova.decisions.NovaDecisions`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        pools: JudgingPools,
        placement: Placement,
        instances: InstanceSource,
        store: ComparisonStore,
        options: ShadowOptions,
        *,
        refresh: Callable[[], Awaitable[None]],
        filled: Callable[[RequestSpec], Awaitable[RequestSpec]],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._pools = pools
        self._placement = placement
        self._instances = instances
        self._store = store
        self._options = options
        self._refresh = refresh
        self._filled = filled
        self._clock = clock
        self._sleep = sleep
        self._language = NovaLanguage(scheduler.table)
        self._under_way: set[asyncio.Task[None]] = set()

    def take(self, call: SelectCall) -> None:
        """Decide and compare a call beside this one. Returns at once."""
        if len(self._under_way) >= MOST_WAITING:
            metrics.NOVA_COMPARISONS.labels("dropped").inc()
            return
        task = asyncio.create_task(self._logged(call))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """End the comparisons that still wait. They are not stored."""
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def compare(self, call: SelectCall) -> list[Comparison]:
        """Decide a call, wait for Nova's claim, and store the comparison.

        A rebuild is not compared, because it claims nothing: the list is empty.

        Raises:
            StorageError, PlacementError, SchedulerError: Nova's claim cannot be read.
        """
        began = self._clock()
        asked = None
        try:
            asked = self._language.read_spec(call.spec)
            if is_rebuild(asked.spec):
                return []
            decision = await self._decided(call, asked.spec)
        except BadRequestSpec as error:
            decision = RoostDecision(run=new_run_id(), cause="bad request", reason=str(error))
        except (SchedulerError, PlacementError, LedgerError, StorageError) as error:
            decision = RoostDecision(
                run=new_run_id(), cause=type(error).__name__, reason=str(error), failed=True
            )
        one = Comparison(
            run=decision.run,
            instance="",
            at=began,
            request_id=call.request_id,
            project=call.project,
            flavor=None if asked is None else asked.spec.flavor.name,
            outcome="failed",
            seconds=self._clock() - began,
        )
        claimed: Mapping[str, str] = await self._claimed(call.instances)
        one = msgspec.structs.replace(one, late=bool(claimed))
        claimed = await self._awaited(call.instances, claimed, began)
        found = compared(one, call.instances, decision, claimed, self._scheduler.table)
        await self._store.put(found)
        for each in found:
            metrics.NOVA_COMPARISONS.labels(each.outcome).inc()
        return found

    async def _logged(self, call: SelectCall) -> None:
        try:
            await self.compare(call)
        except (SchedulerError, PlacementError, LedgerError, StorageError) as error:
            metrics.NOVA_COMPARISONS.labels("dropped").inc()
            _log.warning("a call is not compared", request_id=call.request_id, error=str(error))

    async def _decided(self, call: SelectCall, spec: RequestSpec) -> RoostDecision:
        spec = await self._filled(spec)
        await self._refresh()
        request = HostRequest(
            spec,
            call.instances,
            run=new_run_id(),
            request_id=call.request_id,
            global_request_id=call.global_request_id,
            of_nova=True,
        )
        try:
            destinations = await self._scheduler.select_destinations(request)
        except NoValidHost as error:
            cause = next((step.name for step in error.steps if not step.left), "claims")
            return RoostDecision(
                run=request.run,
                cause=cause,
                reason=error.reason,
                judgement=self._pools.judgement(request.run),
            )
        except BaseException:
            self._pools.judgement(request.run)  # nobody is going to take it
            raise
        return RoostDecision(
            run=request.run,
            destinations=destinations,
            judgement=self._pools.judgement(request.run),
            drawn_from=self._options.drawn_from,
        )

    async def _awaited(
        self, instances: Sequence[str], claimed: Mapping[str, str], began: float
    ) -> Mapping[str, str]:
        """Return what Nova's scheduler claims for the instances, once all have something or time is over."""
        pause = FIRST_PAUSE
        while len(claimed) < len(instances) and self._clock() - began < self._options.wait_seconds:
            await self._sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
            claimed = await self._claimed(instances)
        return claimed

    async def _claimed(self, instances: Sequence[str]) -> dict[str, str]:
        """Return the node that each instance holds something on, without the host that it is leaving."""
        held = await self._placement.holdings(instances)
        found = {}
        for instance, each in held.items():
            if (node := await self._node(instance, each)) is not None:
                found[instance] = node
        return found

    async def _node(self, instance: str, held: Held) -> str | None:
        table = self._scheduler.table
        roots = [await self._root(provider) for provider in held.allocations]
        nodes = {root for root in roots if root is not None and table.index_of_node(root) is not None}
        if not nodes:
            # A host that Roost does not know, unless only a sharing provider is left.
            return next((root for root in roots if root is not None), None)
        facts = await self._instances.facts(instance)
        leaves = None if facts is None or facts.evacuation is None else facts.evacuation.source_host
        stays = set() if leaves is None else {table.nodes[index] for index in table.indexes_of_host(leaves)}
        return min(nodes - stays, default=None)

    async def _root(self, provider: str) -> str | None:
        if self._scheduler.table.index_of_node(provider) is not None:
            return provider
        found = await self._placement.provider(provider)
        return None if found is None else found.root
