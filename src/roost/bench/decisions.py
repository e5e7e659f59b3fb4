"""Loops of scheduling decisions, in memory and durable, for the benchmark `roost.bench.decide`.

Decisions in memory run one after the other on a fleet without a database. Durable decisions go through the
scheduler, the local gateway and a ledger, many at a time, and count once they are committed.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from roost.bench.errors import BenchError
from roost.bench.fleets import SEED, FleetPlan, uuids
from roost.bench.measurement import announce, percentiles_ms
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.requests import NEEDED_FLEETS, PROJECTS, BenchRequests, RequestKind, Shapes, flavors
from roost.bench.store import Store
from roost.fleet import Fleet
from roost.ledger import Ledger, State
from roost.model.record import Attempt, Run, RunReasons
from roost.model.spec import Flavor, RequestSpec
from roost.process.garbage_collection import keep_what_is_loaded
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import Decide, LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.storage import Database

REFUSALS: Final = 1.0
"""Requests of the refused task a second, if a refusal took no time."""
RECORDED: Final = ", recorded"
REFUSING: Final = ", refusals"
"""Suffixes of the kind of store in rows of recorded decisions, and of decisions beside refusals."""
TOO_MUCH_MEMORY: Final = 100_000_000
"""Requested memory in MiB that no host of a fleet has."""


def measure(
    plans: Sequence[FleetPlan],
    instances: Sequence[int],
    alternates: int,
    seconds: float,
    kinds: Sequence[RequestKind] = ("plain",),
    size: int = 10,
) -> list[dict[str, Any]]:
    """Measure decisions in memory, for each fleet, kind of requests, kind of flavors and number of instances.

    Kinds of requests that need a certain fleet (`NEEDED_FLEETS`) are measured only on that one.

    Raises:
        BenchError: A fleet has too few hosts for groups or ignored hosts of ``size``.
    """
    for plan in plans:
        if size >= plan.hosts and {"group", "ignore"}.intersection(kinds):
            raise BenchError(f"{plan.hosts} hosts are too few for a size of {size}: one more must be left")
    rows = []
    for plan in plans:
        announce(f"decide: {plan}")
        fleet = build_fleet(plan)
        for kind in kinds:
            if plan.name != NEEDED_FLEETS.get(kind, plan.name):
                continue
            announce(f"decide: {plan}, {kind}")
            table = build_node_table(plan, PROJECTS if kind == "project" else 0)
            requests = BenchRequests(kind, table, size)
            deciding = InMemoryDecisions(fleet, table, alternates, requests)
            keep_what_is_loaded()
            for shapes in ("repeated", "fresh"):
                for number in instances:
                    times = deciding.run(shapes, number, seconds)
                    rows.append(_row(plan, requests, size, shapes, number, "none", 1, times, sum(times)))
    return rows


class InMemoryDecisions:
    """A loop of decisions on a fleet of this process."""

    def __init__(
        self, fleet: Fleet, table: NodeTable, alternates: int, requests: BenchRequests | None = None
    ) -> None:
        """``requests``: None stands for plain ones."""
        self._requests = requests or BenchRequests("plain", table, 0)
        default = SchedulerOptions()
        self._options = replace(
            default,
            filters=(*default.filters, *self._requests.filters),
            pci=self._requests.pci,
            request_filters=replace(default.request_filters, numa_model=self._requests.numa_model),
        )
        plugins = Plugins.enabled(self._options)
        more = [*plugins.weighers, *self._requests.weighers()]
        self._pools = HostPools(table, self._options, Plugins(plugins.filters, more))
        self._table = table
        self._fleet = fleet
        self._alternates = alternates
        self._rng = np.random.default_rng(SEED)

    def run(self, shapes: Shapes, instances: int, seconds: float) -> list[float]:
        """Decide for ``seconds`` or until the fleet is full, and return the seconds of each request.

        All claims are undone at the end.
        """
        state = State(self._fleet, {}, 0.0)
        times: list[float] = []
        until = time.perf_counter() + seconds
        for spec in self._requests.specs(shapes):
            names = tuple(uuids(self._rng, instances))
            started = time.perf_counter()
            if started > until:
                break
            command = Decide(self._request(spec, names), self._pools)
            state.name(names)
            decided = command.run(state)
            times.append(time.perf_counter() - started)
            if decided.outcome.refusal is not None:
                break  # the fleet is full
        state.take_back(0)
        return times

    def _request(self, spec: RequestSpec, instances: tuple[str, ...]) -> SchedulingRequest:
        queries = placement_queries(spec, FilterFacts(self._table, self._options))
        asked = HostRequest(spec, instances, self._alternates, run="run")
        return SchedulingRequest.of(asked, queries, self._options, 0.0)


class _Durable:
    """Measurements of durable decisions in all turns: the seconds of each request, and of all together."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.refused: list[float] = []
        self.took = 0.0
        self.processor = 0.0


def measure_durable(
    store: Store,
    plans: Sequence[FleetPlan],
    concurrent: Sequence[int],
    alternates: int,
    seconds: float,
    turns: int = 1,
) -> list[dict[str, Any]]:
    """Measure plain decisions that are committed, for each fleet and number of concurrent tasks.

    Each is measured without records, with records in a SQLite file, and beside one task that is refused and
    waits for its explanation, `REFUSALS` times a second; that task has a row of its own. The three take
    ``turns``, because other processes and the disk slow each of them down at another time.

    Raises:
        BenchError: The fleet's database cannot be made, or the fleet is full before the time is over.
        StorageError: The database cannot be used.
    """
    rows = []
    for plan in plans:
        announce(f"decide: {plan}, durable on {store.kind}")
        found = {(beside, tasks): _Durable() for beside in ("", RECORDED, REFUSING) for tasks in concurrent}
        for _ in range(turns):
            for (beside, tasks), durable in found.items():
                with store.copy(plan, "roost") as url, tempfile.TemporaryDirectory() as folder:
                    records = f"sqlite:///{folder}/records.db" if beside == RECORDED else None
                    table = build_node_table(plan)
                    refusing = beside == REFUSING
                    asyncio.run(_decide(durable, url, records, table, tasks, alternates, seconds, refusing))
        plain = BenchRequests("plain", build_node_table(plan), 0)
        for (beside, tasks), durable in found.items():
            name, times, took = f"{store.kind}{beside}", durable.times, durable.took
            row = _row(plan, plain, 0, "repeated", 1, name, tasks, times, took)
            rows.append({**row, "processor_us": durable.processor / len(times) * 1e6})
            if durable.refused:
                row = _row(plan, plain, 0, "fresh", 1, name, 1, durable.refused, took)
                rows.append({**row, "query": "refused"})
    return rows


class _DiscardedRecords:
    """A record backend that discards all records, so that only decisions are measured."""

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None: ...


async def _decide(
    durable: _Durable,
    url: str,
    records_url: str | None,
    table: NodeTable,
    tasks: int,
    alternates: int,
    seconds: float,
    refusing: bool,
) -> None:
    """Measure decisions, and the writing of the records that are left in the queue at the end.

    ``refusing``: one further task is refused repeatedly.
    """
    database = Database(url)
    queue = None if records_url is None else RecordQueue(await open_sql_records(records_url, Retention()))
    ledger = await Ledger.open(database)
    gateway = LocalGateway(ledger, HostPools(table, SchedulerOptions(explain_seconds=60.0)))
    scheduler = Scheduler(gateway, queue or _DiscardedRecords(), clock=lambda: 0.0)
    keep_what_is_loaded()
    wanted = flavors("repeated")
    started, processor = time.perf_counter(), time.process_time()

    async def ask() -> None:
        while (now := time.perf_counter()) < started + seconds:
            spec = RequestSpec(project_id="project", user_id="user", flavor=next(wanted))
            try:
                await scheduler.select_destinations(HostRequest.new(spec, 1, alternates))
            except NoValidHost as error:
                raise BenchError(
                    f"the fleet has no room after {len(durable.times):,} decisions: "
                    "measure a larger one, or for a shorter time"
                ) from error
            durable.times.append(time.perf_counter() - now)

    async def ask_for_too_much() -> None:
        """Send requests that no host has the memory for, each of another size."""
        while (now := time.perf_counter()) < started + seconds:
            flavor = Flavor("refused", 1, TOO_MUCH_MEMORY + len(durable.refused))
            try:
                spec = RequestSpec(project_id="project", user_id="user", flavor=flavor)
                await scheduler.select_destinations(HostRequest.new(spec))
            except NoValidHost as error:
                if error.reasons is None:
                    raise BenchError("a refusal was not explained") from error
            durable.refused.append(time.perf_counter() - now)
            await asyncio.sleep(1 / REFUSALS)

    beside = [ask_for_too_much()] if refusing else []
    await asyncio.gather(*beside, *(ask() for _ in range(tasks)))
    if queue is not None:
        await queue.flush()
    durable.took += time.perf_counter() - started
    durable.processor += time.process_time() - processor
    if queue is not None:
        if queue.dropped or queue.failed:
            raise BenchError(f"{queue.dropped + queue.failed} records were lost")
        await queue.close()
    await ledger.close()
    await database.close()


def _row(
    plan: FleetPlan,
    requests: BenchRequests,
    size: int,
    shapes: Shapes,
    instances: int,
    store: str,
    tasks: int,
    times: list[float],
    took: float,
) -> dict[str, Any]:
    p50, p99 = percentiles_ms(times)
    return {
        "fleet": plan.name,
        "query": requests.kind,
        "size": size if requests.kind in ("group", "ignore") else 0,
        "hosts": plan.hosts,
        "shapes": shapes,
        "instances": instances,
        "store": store,
        "concurrent": tasks,
        "p50_ms": p50,
        "p99_ms": p99,
        "first_ms": times[0] * 1000,
        "per_second": instances * len(times) / took,
    }
