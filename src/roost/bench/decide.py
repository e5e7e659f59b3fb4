"""Benchmark of scheduling decisions: filter, weigh, select, claim and find alternates.

Decisions in memory run one after the other on a fleet without a database. Durable decisions go through the
scheduler, the local gateway and a ledger, many at a time, and count once they are committed.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from roost.bench.errors import BenchError
from roost.bench.fleets import SEED, FleetPlan, uuids
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.progress import announce
from roost.bench.report import Column, Report, report
from roost.bench.requests import NEEDED_FLEETS, PROJECTS, Kind, Requests, Shapes, flavors
from roost.bench.store import Store
from roost.fleet import Fleet
from roost.ledger import Ledger, State, keep_what_is_loaded
from roost.model.record import Attempt, Run, RunReasons
from roost.model.spec import Flavor, RequestSpec
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import Decide, LocalGateway
from roost.scheduler.nodes import NodeTable
from roost.scheduler.plugins import filters, weighers
from roost.scheduler.query import placement_queries
from roost.scheduler.question import Question
from roost.scheduler.request_filters import Facts
from roost.scheduler.selection import Plugins
from roost.storage import Database

COLUMNS: Final = (
    Column("fleet", "fleet"),
    Column("query", "query"),
    Column("size", "size", ","),
    Column("hosts", "hosts", ","),
    Column("shapes", "shapes"),
    Column("instances", "instances", ","),
    Column("store", "store"),
    Column("concurrent", "concurrent", ","),
    Column("p50 ms", "p50_ms", ",.3f"),
    Column("p99 ms", "p99_ms", ",.3f"),
    Column("first ms", "first_ms", ",.2f"),
    Column("decisions/s", "per_second", ",.0f"),
)


REFUSALS: Final = 1.0
"""Refusals in a second, less what each takes."""
TOO_MUCH_MEMORY: Final = 100_000_000
"""MiB, more than any host of a fleet has."""


class Row(msgspec.Struct, frozen=True):
    """The result for requests of ``instances`` each, by ``concurrent`` tasks.

    ``fleet`` is the name of the plan. ``size``: members of each group or ignored hosts, 0 for other queries.
    Milliseconds are those of a request; ``per_second`` counts instances. ``first_ms`` is the time of the
    first request, before any equivalence class is cached.
    """

    fleet: str
    query: Kind | Literal["refused"]
    size: int
    hosts: int
    shapes: Shapes
    instances: int
    store: str
    concurrent: int
    p50_ms: float
    p99_ms: float
    first_ms: float
    per_second: float


def measure(
    plans: Sequence[FleetPlan],
    instances: Sequence[int],
    alternates: int,
    seconds: float,
    kinds: Sequence[Kind] = ("plain",),
    size: int = 10,
) -> list[Row]:
    """Measure decisions in memory, for each fleet, kind of requests, kind of flavors and number of instances.

    Requests that need a fleet of their own (`NEEDED_FLEETS`) are measured on that one only.

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
            requests = Requests(kind, table, size)
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
        self, fleet: Fleet, table: NodeTable, alternates: int, requests: Requests | None = None
    ) -> None:
        """``requests``: plain ones if it is None."""
        self._requests = requests or Requests("plain", table, 0)
        default = SchedulerOptions()
        self._options = replace(
            default,
            filters=(*default.filters, *self._requests.filters),
            pci=self._requests.pci,
            request_filters=replace(default.request_filters, numa_model=self._requests.numa_model),
        )
        self._plugins = Plugins(
            filters(self._options),
            [*weighers(self._options), *self._requests.weighers()],
        )
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
            command = Decide(self._question(spec, names), self._table, self._plugins)
            state.name(names)
            decided = command.run(state)
            times.append(time.perf_counter() - started)
            if decided.outcome.refusal is not None:
                break  # the fleet is full
        state.take_back(0)
        return times

    def _question(self, spec: RequestSpec, instances: tuple[str, ...]) -> Question:
        asked = placement_queries(spec, Facts(self._table, self._options))
        return Question(
            run="run",
            spec=spec,
            query=asked.query,
            fallbacks=asked.fallbacks,
            instances=instances,
            num_alternates=self._alternates,
            min_count=len(instances),
            now=0.0,
            options=self._options,
        )


def measure_durable(
    store: Store, plans: Sequence[FleetPlan], concurrent: Sequence[int], alternates: int, seconds: float
) -> list[Row]:
    """Measure plain decisions that are committed, for each fleet and number of concurrent tasks.

    Each is measured without records, with records in a SQLite file, and beside one task that is refused and
    waits for its explanation, `REFUSALS` times a second: that one has a row of its own.

    Raises:
        BenchError: The fleet's database cannot be made.
        StorageError: The database cannot be used.
    """
    rows = []
    for plan in plans:
        announce(f"decide: {plan}, durable on {store.kind}")
        for beside in ("", ", recorded", ", refusals"):
            with store.copy(plan, "roost") as url, tempfile.TemporaryDirectory() as folder:
                records = f"sqlite:///{folder}/records.db" if beside == ", recorded" else None
                name = f"{store.kind}{beside}"
                for tasks in concurrent:
                    table = build_node_table(plan)
                    refused: list[float] | None = [] if beside == ", refusals" else None
                    durable = _durable(url, records, table, tasks, alternates, seconds, refused)
                    times, took = asyncio.run(durable)
                    plain = Requests("plain", table, 0)
                    rows.append(_row(plan, plain, 0, "repeated", 1, name, tasks, times, took))
                    if refused:
                        row = _row(plan, plain, 0, "fresh", 1, name, 1, refused, took)
                        rows.append(replace(row, query="refused"))
    return rows


class _DiscardedRecords:
    """A record backend that discards everything, because the benchmark is of decisions alone."""

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None: ...


async def _durable(
    url: str,
    records_url: str | None,
    table: NodeTable,
    tasks: int,
    alternates: int,
    seconds: float,
    refused: list[float] | None = None,
) -> tuple[list[float], float]:
    """The seconds of each decision, and of all; those of records that are still to be written included.

    ``refused`` gets the seconds of refusals with their explanations; None: nothing is refused.
    """
    database = Database(url)
    queue = None if records_url is None else RecordQueue(await open_sql_records(records_url, Retention()))
    ledger = await Ledger.open(database)
    gateway = LocalGateway(ledger)
    options = SchedulerOptions(explain_seconds=60.0)
    scheduler = Scheduler(gateway, table, queue or _DiscardedRecords(), options, clock=lambda: 0.0)
    keep_what_is_loaded()
    times: list[float] = []
    wanted = flavors("repeated")
    started = time.perf_counter()

    async def ask() -> None:
        while (now := time.perf_counter()) < started + seconds:
            spec = RequestSpec(project_id="project", user_id="user", flavor=next(wanted))
            await scheduler.select_destinations(spec, 1, alternates)
            times.append(time.perf_counter() - now)

    async def ask_for_too_much(waits: list[float]) -> None:
        """Requests that no host has the memory for, each of another size."""
        while (now := time.perf_counter()) < started + seconds:
            flavor = Flavor("refused", 1, TOO_MUCH_MEMORY + len(waits))
            try:
                await scheduler.select_destinations(
                    RequestSpec(project_id="project", user_id="user", flavor=flavor), 1
                )
            except NoValidHost as error:
                if error.reasons is None:
                    raise BenchError("a refusal was not explained") from error
            waits.append(time.perf_counter() - now)
            await asyncio.sleep(1 / REFUSALS)

    refusing = [] if refused is None else [ask_for_too_much(refused)]
    await asyncio.gather(*refusing, *(ask() for _ in range(tasks)))
    if queue is not None:
        await queue.flush()
    took = time.perf_counter() - started
    if queue is not None:
        if queue.dropped or queue.failed:
            raise BenchError(f"{queue.dropped + queue.failed} records were lost")
        await queue.close()
    await ledger.close()
    await database.close()
    return times, took


def report_on(rows: Sequence[Row], alternates: int, seconds: float) -> Report:
    """Return the report of measured decisions."""
    title = f"Decisions with {alternates} alternates each"
    return report("decide", title, COLUMNS, rows, {"seconds": seconds, "alternates": alternates})


def _row(
    plan: FleetPlan,
    requests: Requests,
    size: int,
    shapes: Shapes,
    instances: int,
    store: str,
    tasks: int,
    times: list[float],
    took: float,
) -> Row:
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return Row(
        fleet=plan.name,
        query=requests.kind,
        size=size if requests.kind in ("group", "ignore") else 0,
        hosts=plan.hosts,
        shapes=shapes,
        instances=instances,
        store=store,
        concurrent=tasks,
        p50_ms=float(p50),
        p99_ms=float(p99),
        first_ms=times[0] * 1000,
        per_second=instances * len(times) / took,
    )
