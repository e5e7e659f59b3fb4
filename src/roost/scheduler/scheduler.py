"""`Scheduler`: chooses hosts for instances and claims them in placement."""

import math
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import msgspec
import structlog

from roost.ledger import LedgerError
from roost.model.reasons import Reasons
from roost.model.record import FAILED, RecordSink, Run, end_of
from roost.model.spec import Destination, RequestSpec, Selection
from roost.model.text import error_text
from roost.model.unread import UnreadKey
from roost.model.what_if import Scenario, WhatIf
from roost.placement.errors import PlacementError
from roost.process import tracing
from roost.records.redact import redacted
from roost.scheduler.errors import (
    BadRequestSpec,
    NewerWord,
    NoAlternate,
    NoValidHost,
    SchedulerError,
    SchedulerFault,
    WordsInTheWay,
)
from roost.scheduler.explain.explanations import Explanations, refusal_reason
from roost.scheduler.explain.scenario import Supposition, check
from roost.scheduler.gateways import Decided, Gateway
from roost.scheduler.nodes.operator_words import OperatorWords, TakenWords
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.request.keys.judgement import KeyJudge
from roost.scheduler.request.keys.servable import check_servable
from roost.scheduler.request.query import PlacementQueries, placement_queries
from roost.scheduler.request.rebuild import NOTHING, is_rebuild, judge_rebuild
from roost.scheduler.request.request_filters import FilterFacts
from roost.scheduler.request.request_filters.routed_networks import segments_of
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.run_id import new_run_id
from roost.scheduler.run_metrics import RunMetrics
from roost.scheduler.run_records import asked_of, attempts_after, attempts_of, numbered, weighed_in
from roost.scheduler.selection.outcome import Basis, ClaimAttempt, Outcome
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.settings import settings_of
from roost.storage import StorageError

NO_GENERATIONS: Mapping[str, int] = MappingProxyType({})
"""All instances of a request are new."""

AS_IT_IS = Scenario()
"""No host is drained or added."""

ROUNDS = 20
"""Times that a request is decided anew because of operators' words. Then it fails, to be tried again."""

T = TypeVar("T")

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
        from roost.scheduler import NoValidHost, Scheduler
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
            for placed in await scheduler.select_destinations(spec, count=2, num_alternates=1):
                claimed, alternate = placed.selected, placed.alternates[0]
                print(f"{claimed.host} claimed: {claimed.allocations}; alternate: {alternate.host}")
            try:
                await scheduler.select_destinations(spec, count=5)
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
        self._plugins = gateway.pools.plugins
        self._settings = settings_of(gateway.pools)
        self._keys = KeyJudge(self._options, self._plugins)
        self._explanations = Explanations(gateway, records)
        self._metrics = RunMetrics([each.name for each in self._plugins.filters])

    async def select_destinations(
        self,
        spec: RequestSpec,
        count: int,
        num_alternates: int = 0,
        *,
        instances: Sequence[str] | None = None,
        min_count: int | None = None,
        request_id: str | None = None,
        global_request_id: str | None = None,
        generations: Mapping[str, int] = NO_GENERATIONS,
        run_id: str | None = None,
        strict: bool = False,
        of_nova: bool = False,
    ) -> tuple[Destination, ...]:
        """Choose and claim hosts for ``count`` equal instances.

        Args:
            instances: consumer uuids, ``count`` different ones; made up if not given.
            min_count: if fewer can be placed, none is; ``count`` if not given.
            request_id, global_request_id: of the user's request, for the records.
            generations: of the instances that hold something already, which the run replaces: what they hold
                counts as free for them, and a claim of theirs is one write at the generation.
            run_id: the id of the run, which no other run has; made up if not given.
            strict: refuse what `check` refuses. of_nova: the request comes from Nova, see `unread`.

        Returns a destination for each instance that was placed, in order; its selected host is claimed,
        its alternates (in the same cell) are not. Where ``min_count`` is met but ``count`` is not, the last
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
        """
        names = tuple(instances) if instances is not None else tuple(str(uuid.uuid4()) for _ in range(count))
        least = count if min_count is None else min_count
        if not len(names) == len(set(names)) == count or not 1 <= least <= count or num_alternates < 0:
            raise ValueError(
                f"count {count}, min_count {least}, num_alternates {num_alternates} and {len(set(names))} "
                "different instances do not go together"
            )
        if not generations.keys() <= set(names):
            raise ValueError(f"generations of other instances: {sorted(generations.keys() - set(names))}")
        try:
            plain_spec = redacted(spec)
        except UnicodeEncodeError as error:
            raise BadRequestSpec("the request spec holds text that cannot be encoded as UTF-8") from error
        run = Run(
            id=run_id or new_run_id(),
            request_id=request_id or f"req-{uuid.uuid4()}",
            global_request_id=global_request_id,
            project_id=spec.project_id,
            user_id=spec.user_id,
            instances=names,
            spec=plain_spec,
            started_at=self._clock(),
            finished_at=math.nan,
            version=None,
            seed=self._seeds(),
            journal=self.table.journal,
            node_version=self.table.version,
            num_alternates=num_alternates,
            min_count=least,
            settings=self._settings,
            generations=dict(generations),
        )
        deadline = self._deadline()

        async def decide(
            word: TakenWords | None, replaced: Mapping[str, int]
        ) -> tuple[SchedulingRequest, Decided]:
            nonlocal run
            unread = self._check(spec) if strict else self.unread(spec, of_nova=of_nova)
            asked = await self._asked(spec)
            run = msgspec.structs.replace(run, asked=asked_of(asked, self.table.version), warnings=unread)
            request = SchedulingRequest(
                run=run.id,
                spec=spec,
                query=asked.query,
                fallbacks=asked.fallbacks,
                limit=asked.limit,
                places=asked.places,
                instances=names,
                num_alternates=num_alternates,
                min_count=least,
                now=run.started_at,
                options=self._options,
                seed=run.seed or 0,
                deadline=deadline,
                monotonic=self._monotonic,
                generations={**run.generations, **replaced},
                word=word,
            )
            if is_rebuild(spec):
                return request, self._rebuild(request)
            return request, await self._gateway.decide(request)

        try:
            span = tracing.span("scheduler.run", {"roost.run": run.id, "roost.instances": count})
            with self._metrics.timed(), span, self.table.reading():
                request, decided = await self._decide_anew(decide)
                explaining = self._explanations.begin(request, decided.outcome)
        except (StorageError, LedgerError):
            self.table.release(*names)
            raise
        except (SchedulerError, PlacementError) as error:
            self.table.release(*names)
            if isinstance(error, SchedulerFault):
                _log.exception("a plugin failed", run=run.id, request_id=run.request_id)
            if isinstance(error, SchedulerError):
                run = _decided_on(run, error.basis)
            self._record(run, Outcome((), (), (), str(error)))
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error_text(error)}"
            fault = SchedulerFault(f"the scheduler or a plugin failed: {text}")
            self.table.release(*names)
            _log.exception("a run of the scheduler failed", run=run.id, request_id=run.request_id)
            self._record(run, Outcome((), (), (), str(fault)))
            raise fault from error
        outcome = decided.outcome
        now = {each: decided.generations.get(each, before + 1) for each, before in generations.items()}
        outcome = msgspec.structs.replace(
            outcome,
            destinations=numbered(outcome, now if decided.claims and not is_rebuild(spec) else None),
        )
        self._metrics.decided(outcome)
        run = _decided_on(run, Basis(decided.version, decided.position, decided.node_version, decided.told))
        self._record(run, outcome)
        if not outcome.destinations:
            reasons = await self._explanations.wait(explaining)
            reason = refusal_reason(outcome, reasons, len(names))
            warnings = () if of_nova else run.warnings
            raise NoValidHost(run.id, reason, outcome.steps, outcome.tries, reasons, warnings)
        return outcome.destinations

    def unread(self, spec: RequestSpec, *, of_nova: bool = False) -> tuple[UnreadKey, ...]:
        """Return the extra specs, image properties and hints of a request that have no effect.

        ``of_nova``: the request comes from Nova, whose drivers read keys too.
        """
        return self._keys.unread(spec, self.table, of_nova=of_nova)

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
            unread = self._check(spec)
            request = self._request(spec, await self._asked(spec), 1)
            try:
                for plugin in (*self._plugins.filters, *self._plugins.weighers):
                    plugin.key_of(request)
            except SchedulerError:
                raise
            except Exception as error:
                text = f"{type(error).__name__}: {error_text(error)}"
                raise SchedulerFault(f"a plugin cannot read the request: {text}") from error
            if not is_rebuild(spec):
                await self._gateway.check(request.queries)
            return unread

        with self.table.reading():
            return await self._decide_anew(once)

    async def explain(self, spec: RequestSpec, count: int = 1) -> Reasons | None:
        """Return the expected result of a request for ``count`` instances, and why; nothing is claimed or
        recorded.

        None if it cannot be found out: too many wait, or the state of placement is not in this process.

        Raises: `BadRequestSpec`, `SchedulerFault`, and the errors of the gateway.
        """
        with self.table.reading():
            request = self._request(spec, await self._asked(spec), count)
            return await self._gateway.explain(request, 0, newest=True)

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

    async def use_alternate(
        self,
        spec: RequestSpec,
        instance: str,
        failed: Selection,
        reason: str,
        alternates: Sequence[Selection],
        *,
        run: str,
        request_id: str,
    ) -> Replacement:
        """Claim the next alternate of an instance in place of the host that failed it.

        Each alternate is checked again on the present state: heartbeat and state of its host, room, filters
        and server group. The first that passes takes over the claim, by one write at the generation
        of ``failed``. The call may be repeated: if the claim was moved already, that alternate is the result.

        Args:
            spec: the request spec that the instance was placed by.
            failed: the selection that the instance is claimed on. reason: why it failed there.
            alternates: the alternates that are left, best first.
            run: the id of the run that chose them. request_id: of the user's request.

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
        held, left, tries = failed, tuple(alternates), tuple[ClaimAttempt, ...]()

        async def deciding(word: TakenWords | None, _: Mapping[str, int]) -> Replacement:
            nonlocal held, left, tries
            try:
                found = await self._replaced(spec, instance, held, left, run, now, deadline, word)
            except NewerWord as newer:
                if newer.taken_away is not None:
                    held, left = newer.taken_away.selected, newer.taken_away.alternates
                    tries += newer.taken_away.tries
                raise
            return msgspec.structs.replace(found, tries=(*tries, *found.tries))

        try:
            with tracing.span("scheduler.use_alternate", {"roost.run": run}), self.table.reading():
                found = await self._decide_anew(deciding)
        except (StorageError, LedgerError, SchedulerError, PlacementError):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error_text(error)}"
            _log.exception("an alternate could not be checked", run=run, request_id=request_id)
            raise SchedulerFault(f"the scheduler or a plugin failed: {text}") from error
        at = self._clock()
        ended = end_of(failed, FAILED, at, run=run, request_id=request_id, instance=instance, reason=reason)
        self._records.put([], [ended, *attempts_after(run, request_id, at, failed, found)])
        if found.selected is None:
            self.table.release(instance)
            raise NoAlternate(found.tries)
        index = self.table.index_of_node(found.selected.node)
        if index is not None:
            self.table.claim(instance, index, *taken_by(spec), found.selected.assignment)
        return found

    def _check(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """As `check_request`, without a query to placement."""
        unread = self._keys.check(spec, self.table)
        check_servable(spec, self.table, self._options)
        return unread

    def _request(self, spec: RequestSpec, asked: PlacementQueries, count: int) -> SchedulingRequest:
        """Return a scheduling request for new instances, of which nothing is claimed."""
        return SchedulingRequest(
            run=str(uuid.uuid4()),
            spec=spec,
            query=asked.query,
            fallbacks=asked.fallbacks,
            limit=asked.limit,
            places=asked.places,
            instances=tuple(str(uuid.uuid4()) for _ in range(count)),
            num_alternates=0,
            min_count=count,
            now=self._clock(),
            options=self._options,
        )

    async def _replaced(
        self,
        spec: RequestSpec,
        instance: str,
        failed: Selection,
        alternates: tuple[Selection, ...],
        run: str,
        now: float,
        deadline: float,
        word: TakenWords | None,
    ) -> Replacement:
        """Have the gateway use an alternate. ``word``: the operators' words so far. Raises `NewerWord`."""
        asked = await self._asked(spec)
        scheduling = SchedulingRequest(
            run=run,
            spec=spec,
            query=asked.query,
            fallbacks=asked.fallbacks,
            limit=asked.limit,
            places=asked.places,
            instances=(instance,),
            num_alternates=0,
            min_count=1,
            now=now,
            options=self._options,
            deadline=deadline,
            monotonic=self._monotonic,
            word=word,
        )
        request = ReplacementRequest(scheduling=scheduling, failed=failed, alternates=alternates)
        return await self._gateway.use_alternate(request)

    async def _decide_anew(self, decide: Callable[[TakenWords | None, Mapping[str, int]], Awaitable[T]]) -> T:
        """Decide until no operator has said anything meanwhile. Raises `WordsInTheWay`.

        The newest words are read before a request is refused as wrong: its availability zone may be new.
        """
        words, generations = self._words, NO_GENERATIONS
        for _ in range(ROUNDS):
            taken = None if words is None else words.taken
            try:
                return await decide(taken, generations)
            except BadRequestSpec:
                if words is None or taken is None:
                    raise
                await words.look()
                if words.taken.events == taken.events:
                    raise
            except NewerWord as newer:
                generations = newer.generations
                if words is not None and newer.mark is not None:
                    await words.take(newer.mark)
        raise WordsInTheWay(
            f"operators said something {ROUNDS} times while the request was decided: try again"
        )

    def _rebuild(self, request: SchedulingRequest) -> Decided:
        self.table.seen_since(request.oldest_heartbeat)
        node_version = self.table.version
        outcome = judge_rebuild(request, self._gateway.pools)
        return Decided(outcome, None, 0.0, node_version=node_version)

    def _deadline(self) -> float:
        """Return the end of a run that begins now, by the monotonic clock."""
        limit = self._options.max_run_seconds
        return self._monotonic() + limit if limit else math.inf

    async def _asked(self, spec: RequestSpec) -> PlacementQueries:
        """Return the placement queries for one instance. Raises `BadRequestSpec`."""
        if is_rebuild(spec):
            return NOTHING
        facts = FilterFacts(self.table, self._options, aggregates=await self._segments(spec))
        return placement_queries(spec, facts)

    async def _segments(self, spec: RequestSpec) -> Mapping[str, frozenset[str]]:
        """Return the aggregates of the network segments of a request."""
        segments = segments_of(spec, self._options)
        return await self._gateway.aggregates(sorted(segments)) if segments else {}

    def _record(self, run: Run, outcome: Outcome) -> None:
        finished = self._clock()
        ended = msgspec.structs.replace(
            run,
            finished_at=finished,
            steps=outcome.steps,
            refusal=outcome.refusal,
            destinations=outcome.destinations,
            weighed=weighed_in(outcome),
        )
        self._records.put([ended], attempts_of(run.id, run.request_id, finished, outcome))


def _decided_on(run: Run, basis: Basis) -> Run:
    """Return a run with the versions that it was decided on."""
    return msgspec.structs.replace(
        run,
        version=basis.version,
        position=basis.position,
        told=basis.told,
        node_version=run.node_version if basis.node_version is None else basis.node_version,
    )
