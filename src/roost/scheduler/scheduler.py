"""`Scheduler`: chooses hosts for instances and claims them in placement."""

import math
import random
import time
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import structlog

from roost.ledger import LedgerError
from roost.model.allocation import Resources, total
from roost.model.reasons import Reasons
from roost.model.record import RecordSink
from roost.model.spec import Destination, RequestSpec, UnreadKey
from roost.model.text import error_text
from roost.model.what_if import Scenario, WhatIf
from roost.placement.errors import PlacementError
from roost.process import tracing
from roost.scheduler.errors import NewerWord, NoAlternate, NoValidHost, SchedulerError, SchedulerFault
from roost.scheduler.explain.explanations import Explanations, refusal_reason
from roost.scheduler.explain.scenario import Supposition, check
from roost.scheduler.gateways import Decided, Gateway
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.nodes.operator_words import OperatorWords, TakenWords, by_the_newest_words
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.request.rebuild import is_rebuild, judge_rebuild
from roost.scheduler.request.request_reader import RequestReader
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.run_metrics import RunMetrics
from roost.scheduler.run_records import RunRecord, attempts_after, settings_of
from roost.scheduler.selection.outcome import ClaimAttempt
from roost.scheduler.selection.replacement import AlternateRequest, Replacement, ReplacementRequest
from roost.storage import StorageError

AS_IT_IS = Scenario()
"""No host is drained or added."""

SEED_BITS = 63
"""Bits of a run's seed, so that it fits an integer of every database."""

_log = structlog.get_logger()


def seeds_from(generator: random.Random) -> Callable[[], int]:
    """Return a function that draws seeds of runs from a generator of random numbers."""
    return partial(generator.getrandbits, SEED_BITS)


class Scheduler:
    """Chooses hosts and claims them.

    Args:
        gateway: how placement is reached, and which hosts and plugins there are.
        records: where each run is recorded.
        clock: seconds since the epoch.
        monotonic: seconds of a clock that never goes back, for the time that a run may take.
        words: brings the table up to date with what operators say; None: nobody says anything.
        seeds: gives the seed of each run's random numbers, from 0 to 2**63 - 1; the record has it.

    Example::

        import asyncio
        import time

        from roost.ledger import Ledger
        from roost.model.node import NodeReport
        from roost.model.inventory import Inventory
        from roost.model.spec import Flavor, RequestSpec
        from roost.placement.service import PlacementService
        from roost.records import RecordQueue, Retention
        from roost.records.backend import open_sql_records
        from roost.scheduler import HostRequest, NoValidHost, Scheduler
        from roost.scheduler.gateways.local import LocalGateway
        from roost.scheduler.nodes import NodeTable
        from roost.scheduler.selection.host_pools import HostPools
        from roost.storage import Database

        HOSTS = {
            "compute-1": "5c1d8e6a-0000-4000-8000-000000000001",
            "compute-2": "5c1d8e6a-0000-4000-8000-000000000002",
            "compute-3": "5c1d8e6a-0000-4000-8000-000000000003",
        }


        async def main() -> None:
            database = Database("sqlite:///roost.db")
            ledger = await Ledger.open(database)
            placement = PlacementService(ledger)
            for name, uuid in HOSTS.items():
                await placement.ensure_provider(uuid, name)
                inventories = {"VCPU": Inventory(4), "MEMORY_MB": Inventory(8192)}
                await placement.set_inventories(uuid, inventories)

            now = time.time()
            reports = [NodeReport(host=name, node=HOSTS[name], cell="cell1", last_seen=now) for name in HOSTS]
            records = RecordQueue(await open_sql_records("sqlite:///records.db", Retention()))
            scheduler = Scheduler(LocalGateway(ledger, HostPools(NodeTable(reports))), records)

            small = Flavor("small", vcpus=2, memory_mb=2048)
            spec = RequestSpec(project_id="demo", user_id="alice", flavor=small)
            for placed in await scheduler.select_destinations(HostRequest.new(spec, 2, num_alternates=1)):
                claimed, alternate = placed.selected, placed.alternates[0]
                print(f"{claimed.host} claimed: {claimed.allocations}; alternate: {alternate.host}")
            try:
                await scheduler.select_destinations(HostRequest.new(spec, 5))
            except NoValidHost as error:
                print(f"refused: {error.reason}")

            await records.close()
            await ledger.close()
            await database.close()


        asyncio.run(main())
    """

    def __init__(
        self,
        gateway: Gateway,
        records: RecordSink,
        clock: Callable[[], float] = time.time,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        seeds: Callable[[], int] | None = None,
        words: OperatorWords | None = None,
    ) -> None:
        self.table = gateway.pools.table
        self._words = words
        self._gateway = gateway
        self._records = records
        self._options = gateway.pools.options
        self._clock = clock
        self._monotonic = monotonic
        self._seeds = seeds or seeds_from(random.Random())
        self._settings = settings_of(gateway.pools)
        self._reader = RequestReader(gateway.pools, gateway.aggregates)
        self._explanations = Explanations(gateway, records)
        self._metrics = RunMetrics([each.name for each in gateway.pools.plugins.filters])

    async def select_destinations(self, request: HostRequest) -> tuple[Destination, ...]:
        """Choose and claim hosts for equal instances.

        Returns a destination for each instance that was placed, in order; its selected host is claimed,
        its alternates (in the same cell) are not. Where ``min_count`` is met but not all are placed, the last
        instances have none; the record says why.

        Nothing is claimed if it raises. Every run is put into the records, unless a database of this process
        fails or the request spec cannot be encoded.

        Raises:
            NoValidHost: fewer than ``min_count`` instances can be placed.
            BadRequestSpec: the request spec cannot be turned into a query, or can never be served.
            CannotWeigh: a host that must have a weight has none.
            ConcurrentUpdate: an instance holds something already, or not at its generation.
            SchedulerFault: a filter, a weigher or the scheduler raised an unexpected error.
            PlacementUnavailable, PlacementRefused: from a gateway over HTTP.
            StorageError, LedgerError: a database of this process fails.
            ValueError: the request contradicts itself, see `HostRequest.check`.
        """
        request.check()
        seed = self._seeds()
        record = RunRecord(
            request, self.table, self._records, self._clock, seed=seed, settings=self._settings
        )
        run, deadline = record.run, self._deadline()

        async def decide(
            word: TakenWords | None, reached: Mapping[str, int]
        ) -> tuple[SchedulingRequest, Decided]:
            warnings = self._reader.warnings(request)
            derived = await self._reader.derived(
                msgspec.structs.replace(request, run=run.id).at(reached),
                run.started_at,
                seed=seed,
                deadline=deadline,
                monotonic=self._monotonic,
                word=word,
            )
            record.asked(derived, warnings)
            if is_rebuild(request.spec):
                return derived, self._rebuild(derived)
            return derived, await self._gateway.decide(derived)

        span = tracing.span("scheduler.run", {"roost.run": run.id, "roost.instances": len(run.instances)})
        with record.failing(), self._metrics.timed(), span, self.table.reading():
            derived, decided = await by_the_newest_words(self._words, decide)
            explaining = self._explanations.begin(derived, decided.outcome)
        outcome = record.end(derived, decided)
        self._metrics.decided(outcome)
        if not outcome.destinations:
            reasons = await self._explanations.wait(explaining)
            reason = refusal_reason(outcome, reasons, len(run.instances))
            warnings = () if request.of_nova else record.run.warnings
            raise NoValidHost(run.id, reason, outcome.steps, outcome.tries, reasons, warnings)
        return outcome.destinations

    def unread(self, spec: RequestSpec, *, of_nova: bool = False) -> tuple[UnreadKey, ...]:
        """Return the extra specs, image properties and hints of a request that have no effect.

        ``of_nova``: the request comes from Nova, whose drivers read keys too.
        """
        return self._reader.unread(spec, of_nova=of_nova)

    async def check_request(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """Check that a request can be served on some hosts, perhaps not on the present ones.

        Returns the keys that have no effect. Nothing is claimed or recorded.

        Raises:
            BadRequestSpec: the request can never be served, or a key can only be a mistake.
            SchedulerFault: a filter or weigher raised an unexpected error.
            PlacementUnavailable, PlacementRefused: from a gateway over HTTP.
            StorageError, LedgerError: a database of this process fails.
        """

        async def once(word: TakenWords | None, _: Mapping[str, int]) -> tuple[UnreadKey, ...]:
            unread = self._reader.checked(spec)
            request = await self._reader.derived(HostRequest.new(spec), self._clock())
            self._reader.check_keys(request)
            if not is_rebuild(spec):
                await self._gateway.check(request.queries)
            return unread

        with self.table.reading():
            return await by_the_newest_words(self._words, once)

    async def amounts(self, spec: RequestSpec) -> list[Resources]:
        """Return the amounts of each class that one instance holds once it is placed.

        There may be several: a request for dedicated processors is served by PCPU or by VCPU.

        Raises: `BadRequestSpec`, and the errors of the gateway.
        """
        with self.table.reading():
            request = await self._reader.derived(HostRequest.new(spec), self._clock())
        return [total(group.resources for group in query.groups) for query in request.queries]

    async def explain(self, spec: RequestSpec, count: int = 1, moves: int = 0) -> Reasons | None:
        """Return the expected result of a request for ``count`` instances, and why; nothing is claimed or
        recorded.

        ``moves``: look for up to so many instances that could move so that it fits.

        None if it cannot be found out: too many wait, or the state of placement is not in this process.

        Raises: `BadRequestSpec`, `SchedulerFault`, and the errors of the gateway.
        """
        with self.table.reading():
            request = await self._reader.derived(HostRequest.new(spec, count), self._clock())
            return await self._gateway.explain(request, 0, newest=True, moves=moves)

    async def what_if(self, spec: RequestSpec, limit: int, scenario: Scenario = AS_IT_IS) -> WhatIf | None:
        """Return how many more instances of a request fit, at most ``limit``, in a scenario.

        Nothing is claimed or recorded. None if it cannot be found out: too many wait, or the state of
        placement is not in this process.

        Raises: `BadRequestSpec`, `SchedulerFault`, and the errors of the gateway.
        """
        with self.table.reading():
            check(self.table, scenario)
            supposed = Supposition(spec, self._options, limit, self._clock(), scenario)
            return await self._gateway.what_if(supposed)

    async def plan_maintenance(self, wanted: WantedPlan) -> MaintenancePlan | None:
        """Return the waves in which hosts are emptied for a maintenance; nothing is claimed or recorded.

        None if it cannot be planned: another plan is being made, it takes too long, or the state of placement
        is not in this process.

        Raises: `BadRequestSpec`, `SchedulerFault`, and the errors of the gateway.
        """
        if self._words is not None:
            # No commit will tell that a word was missing.
            await self._words.look()
        with self.table.reading():
            return await self._gateway.plan(wanted, self._clock())

    async def use_alternate(self, request: AlternateRequest) -> Replacement:
        """Claim the next alternate of an instance in place of the host that failed it.

        Each alternate is checked again on the present state: heartbeat and state of its host, room, filters
        and server group. The first that passes takes over the claim, by one write at the generation
        of ``failed``. The call may be repeated: if the claim was moved already, that alternate is the result.

        The failed attempt, the alternates that were passed over, each with the reason, and the claim are put
        into the records. Nothing is recorded if it raises anything but `NoAlternate`.

        Raises:
            NoAlternate: none of them can be used. The claim is as it was.
            NothingClaimed: the instance holds nothing.
            StaleClaim: others have moved its claim since ``failed`` was read.
            BadRequestSpec: the request spec cannot be turned into a query.
            SchedulerFault: a filter, a weigher or the scheduler raised an unexpected error.
            ConcurrentUpdate: another writer was first each time.
            PlacementUnavailable, PlacementRefused: from a gateway over HTTP.
            StorageError, LedgerError: a database of this process fails.
        """
        now, deadline = self._clock(), self._deadline()
        run, instance = request.run, request.instance
        wanted = HostRequest(
            request.spec,
            (instance,),
            run=run,
            request_id=request.request_id,
            held_by={instance: request.held_by} if request.held_by else {},
        )
        left, tries = request, tuple[ClaimAttempt, ...]()

        async def deciding(word: TakenWords | None, _: Mapping[str, int]) -> Replacement:
            nonlocal left, tries
            derived = await self._reader.derived(
                wanted, now, deadline=deadline, monotonic=self._monotonic, word=word
            )
            try:
                found = await self._gateway.use_alternate(ReplacementRequest.of(left, derived))
            except NewerWord as newer:
                if (taken := newer.taken_away) is not None:
                    left = msgspec.structs.replace(left, failed=taken.selected, alternates=taken.alternates)
                    tries += taken.tries
                raise
            return msgspec.structs.replace(found, tries=(*tries, *found.tries))

        try:
            with tracing.span("scheduler.use_alternate", {"roost.run": run}), self.table.reading():
                found = await by_the_newest_words(self._words, deciding)
        except (StorageError, LedgerError, SchedulerError, PlacementError):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error_text(error)}"
            _log.exception("an alternate could not be checked", run=run, request_id=request.request_id)
            raise SchedulerFault(f"the scheduler or a plugin failed: {text}") from error
        self._records.put([], attempts_after(request, self._clock(), found))
        if found.selected is None:
            self.table.release(instance)
            raise NoAlternate(found.tries)
        index = self.table.index_of_node(found.selected.node)
        if index is not None:
            self.table.claim(instance, index, *taken_by(request.spec), found.selected.assignment)
        return found

    def _rebuild(self, request: SchedulingRequest) -> Decided:
        self.table.seen_since(request.oldest_heartbeat)
        node_version = self.table.version
        outcome = judge_rebuild(request, self._gateway.pools)
        return Decided(outcome, None, 0.0, node_version=node_version)

    def _deadline(self) -> float:
        """Return the end of a run that begins now, by the monotonic clock."""
        limit = self._options.max_run_seconds
        return self._monotonic() + limit if limit else math.inf
