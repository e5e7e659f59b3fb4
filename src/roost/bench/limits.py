"""Benchmark of limits: the limit of this machine for a kind of work, and the share of it that Roost reaches.

A limit is the time or rate of the part of the work that cannot be avoided: the scan of the columns, the
encoding of the response, the rows in the database, or an HTTP exchange of the same size. The limit and Roost
are measured in turns.
"""

import asyncio
import time
import uuid
from functools import partial
from typing import Any, Final, get_args

import click
import msgspec
import numpy as np
from sqlalchemy.engine import Connection

from roost.bench.claims import RESOURCES, Claims, prepared
from roost.bench.decisions import InMemoryDecisions
from roost.bench.filters import host_queries
from roost.bench.fleets import PROJECT, SEED, USER, FleetPlan, flat
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import (
    ComparedSetting,
    announce,
    figures,
    http_request,
    in_turns,
    median_ms,
)
from roost.bench.memory_fleet import build_fleet, build_node_table
from roost.bench.options import count_option, reported, workers
from roost.bench.queries import QUERIES
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.requests import Shapes
from roost.bench.services import BenchService, NullService, Roost
from roost.bench.store import Store
from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.ledger.append import NewCommit, append
from roost.ledger.commit_steps import Position
from roost.ledger.delta import newest
from roost.ledger.feed import encode_changes
from roost.ledger.load import load
from roost.ledger.projection import ConsumerIds, Statement, project
from roost.ledger.tables import (
    allocations,
    inventories,
    provider_aggregates,
    provider_traits,
    resource_providers,
)
from roost.model.allocation import Consumer
from roost.model.change import AllocationsChanged, Change, GenerationChanged
from roost.storage import Database

LIMIT: Final = 1_000
FEW: Final = 10
BATCH: Final = 64
"""Claims of one commit if 64 clients send claims."""
STATE: Final = (resource_providers, inventories, provider_traits, provider_aggregates, allocations)
"""The tables that a fleet is loaded from."""

TABLE: Final = BenchTable(
    "limits",
    "What the machine allows",
    (
        Column("work", "work"),
        Column("unit", "unit"),
        Column("limit", "limit", ",.3g"),
        Column("Roost", "roost", ",.3g"),
        Column("share of the limit", "share", ".0%"),
        Column("the limit is", "what"),
    ),
)
"""Each row is one limit, and Roost's figure for the same work.

``share`` is 1 at the limit, for rates (1/s) as for times (ms, s).
"""


def measure(setting: ComparedSetting, store: Store, plan: FleetPlan, clients: int) -> BenchReport:
    """Measure every limit, and Roost's figure for the same work, on a flat fleet.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    announce(f"limits: {plan}")
    rows = _scan(plan, setting.seconds)
    rows.append(_loading(plan, store))
    log = setting.folder / "limits.log"
    with (
        store.copy(plan, "roost") as url,
        Roost(log, url, setting.workers) as roost,
        NullService(log, url) as null,
    ):
        rows += _candidates(setting, roost, null)
        rows += _claims(setting, plan, store, roost, null, clients)
    settings = {"database": store.kind, "fleet": str(plan), "rounds": setting.rounds, "clients": clients}
    return TABLE.report(rows, settings)


def _row(work: str, unit: str, limit: float, roost: float, what: str) -> dict[str, Any]:
    share = roost / limit if unit == "1/s" else limit / roost
    return {"work": work, "unit": unit, "limit": limit, "roost": roost, "share": share, "what": what}


def _scan(plan: FleetPlan, seconds: float) -> list[dict[str, Any]]:
    fleet = build_fleet(plan)
    queries = host_queries(fleet)
    rng = np.random.default_rng(SEED)
    free = [rng.integers(0, 1 << 18, plan.hosts) for _ in range(3)]
    has = [rng.random(plan.hosts) < 0.98 for _ in range(3)]

    def scan(number: int) -> None:
        fits = (free[0] >= number) & (free[1] >= number) & (free[2] >= number)
        np.flatnonzero(fits & has[0] & has[1] & ~has[2])

    alone = median_ms(scan, seconds)
    ours = median_ms(lambda n: CandidateSearch(fleet, queries[n % len(queries)].query).anchors, seconds)
    what = "six numpy comparisons of whole columns"
    deciding = InMemoryDecisions(fleet, build_node_table(plan), alternates=2)
    rows = [_row("find the hosts, in process", "ms", alone, ours, what)]
    for shapes in get_args(Shapes):
        decided = float(np.median(deciding.run(shapes, 1, seconds))) * 1000
        rows.append(_row(f"decide, {shapes} shapes", "ms", alone, decided, what))
    return rows


def _loading(plan: FleetPlan, store: Store) -> dict[str, Any]:
    """Measure the fetch of all rows by the driver, and the load of a fleet from the same database."""
    with store.copy(plan, "roost") as url:
        database = Database(url, read_only=True)
        try:
            started = time.perf_counter()
            database.read_now(_fetch_all)
            fetched = time.perf_counter()
            database.read_now(load)
            loaded = time.perf_counter()
        finally:
            asyncio.run(database.close())
    what = "all rows of the tables, as the driver gives them"
    return _row("load the fleet", "s", fetched - started, loaded - fetched, what)


def _fetch_all(connection: Connection) -> None:
    for table in STATE:
        connection.exec_driver_sql(f"SELECT * FROM {table.name}").fetchall()


def _candidates(setting: ComparedSetting, roost: BenchService, null: BenchService) -> list[dict[str, Any]]:
    path = next(QUERIES[0].paths(LIMIT))
    answer = roost.request("GET", path)
    value = answer.json()
    encoding = median_ms(lambda _: msgspec.json.encode(value), setting.seconds)
    size = len(answer.content)
    bare, ours = _beside(setting, roost, null, path, f"/bytes/{size}")
    work = f"GET candidates, limit={LIMIT}"
    rows = [
        _row(work, "ms", encoding, ours, f"msgspec encoding the same {size:,} bytes"),
        _row(work, "ms", bare, ours, "an empty handler sending as many bytes"),
    ]
    path = next(QUERIES[0].paths(FEW))
    size = len(roost.request("GET", path).content)
    bare, ours = _beside(setting, roost, null, path, f"/head/{size}")
    what = f"an empty handler and one indexed query, sending as many bytes ({size:,})"
    return [*rows, _row(f"GET candidates, limit={FEW}", "ms", bare, ours, what)]


def _beside(
    setting: ComparedSetting, roost: BenchService, null: BenchService, path: str, empty: str
) -> tuple[float, float]:
    """Return the p50 in ms of the empty handler for a path, and Roost's for another, measured in turns."""
    paths = {null.name: empty, roost.name: path}

    def gets(service: BenchService, _: int) -> LoadPlan:
        return setting.load(service, [http_request("GET", paths[service.name])])

    bare, ours = (figures(load).p50_ms for load in in_turns((null, roost), gets, setting.rounds))
    return bare, ours


def _claims(
    setting: ComparedSetting,
    plan: FleetPlan,
    store: Store,
    roost: BenchService,
    null: BenchService,
    clients: int,
) -> list[dict[str, Any]]:
    draw = Claims(plan.roots(), seed=11)

    def puts(service: BenchService, _: int) -> LoadPlan:
        requests = draw.puts(prepared(service, setting.seconds))
        return setting.load(service, [*requests.values()], clients, cyclic=False)

    loads = in_turns((null, roost), puts, setting.rounds)
    bare, ours = (figures(load).per_second for load in loads)
    with store.copy(plan, "roost") as url:
        inserting = inserts(url, plan, setting.seconds)
    work = f"PUT claims, {clients} clients"
    return [
        _row(work, "1/s", bare, ours, "an empty handler reading the same bodies"),
        _row(
            work,
            "1/s",
            inserting,
            ours,
            f"their rows by the ledger's own statements, {BATCH} claims a commit",
        ),
    ]


def inserts(url: str, plan: FleetPlan, seconds: float) -> float:
    """Return the claims per second of a database to which only the rows of claims are written, durably.

    They are written by the ledger's own transaction. To draft them takes no part of the time.
    """
    database = Database(url)
    try:
        fleet, head = database.read_now(load), database.read_now(newest)
        took, number = 0.0, 0
        while took < seconds:
            commit, statements = _drafted(fleet, plan, head.seq + 1)
            work = partial(append, after=head, commit=commit, statements=statements, withdrawn=())
            started = time.perf_counter()
            database.write_now(work)
            if number:  # the first one opens a connection
                took += time.perf_counter() - started
            number += 1
            head = Position(commit.seq, commit.writer)
        return (number - 1) * BATCH / took
    finally:
        asyncio.run(database.close())


def _drafted(fleet: Fleet, plan: FleetPlan, seq: int) -> tuple[NewCommit, list[Statement]]:
    """Return commit ``seq``, of `BATCH` claims of new consumers on hosts of a fleet, and its statements."""
    changes: list[Change] = []
    for each in range(seq * BATCH, (seq + 1) * BATCH):
        host = fleet.uuid(each * 7_919 % plan.hosts)
        consumer = Consumer(str(uuid.uuid4()), PROJECT, USER, 1, "INSTANCE")
        changes.append(AllocationsChanged(consumer.uuid, None, consumer, {}, {host: RESOURCES}))
        changes.append(GenerationChanged(host, seq - 1, seq))
    statements = project(fleet, changes, 0.0, ConsumerIds({}, seq))
    return NewCommit(seq, str(uuid.uuid4()), 0.0, encode_changes(changes)), statements


@click.command(epilog="Example: roost bench limits --hosts 100000 --database postgresql")
@count_option("--hosts", 10_000, "Hosts of the fleet.")
@count_option("--clients", 64, "Clients that claim.")
@workers
@reported(rounds=2, seconds=1.0)
def limits(setting: ComparedSetting, hosts: int, clients: int) -> BenchReport:
    """Measure what this machine allows for the same work, and the share of it that Roost reaches."""
    with setting.store() as store:
        return measure(setting, store, flat(hosts), clients)
