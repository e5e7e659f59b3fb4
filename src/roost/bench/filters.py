"""The experiment that started this work: which hosts can hold this, found in three ways.

loop    for each request all hosts are loaded from the database and filtered in Python
where   the database filters
fleet   vector operations on columns in memory

All three must find the same hosts.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.bench.contest import tell
from roost.bench.fleets import COMMON_TRAITS, FleetPlan
from roost.bench.queries import SIZES
from roost.bench.report import Column, Report, report
from roost.bench.store import Store
from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.ledger.load import load
from roost.ledger.tables import allocations, inventories, provider_traits, resource_providers
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.vocabulary import DISABLED_TRAIT
from roost.storage import Database

REQUIRED: Final = (COMMON_TRAITS[3], COMMON_TRAITS[17])
DISK_GB: Final = 20
LEAST: Final = 3
"""Requests in each way, however long they take."""

COLUMNS: Final = (
    Column("hosts", "hosts", ","),
    Column("found", "found", ","),
    Column("Python loop ms", "loop_ms", ",.2f"),
    Column("SQL WHERE ms", "where_ms", ",.2f"),
    Column("fleet ms", "fleet_ms", ",.3f"),
    Column("loop / fleet", "loop_ratio", ",.0f"),
    Column("WHERE / fleet", "where_ratio", ",.0f"),
)


class Row(msgspec.Struct, frozen=True):
    """Median milliseconds of a request in each way; ``found``: hosts, for the first flavor."""

    hosts: int
    found: int
    loop_ms: float
    where_ms: float
    fleet_ms: float
    loop_ratio: float
    where_ratio: float


class Ask(msgspec.Struct, frozen=True):
    """A request by the ids of a database: amounts by resource class, traits required and forbidden."""

    amounts: dict[int, int]
    required: tuple[int, ...]
    forbidden: int
    query: CandidateQuery


def asks(fleet: Fleet) -> list[Ask]:
    """One request for each of `SIZES`."""
    found = []
    for vcpus, memory in SIZES:
        resources = {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": DISK_GB}
        group = RequestGroup(resources, required=all_of(*REQUIRED), forbidden=frozenset((DISABLED_TRAIT,)))
        amounts = {fleet.resource_classes[name]: amount for name, amount in resources.items()}
        required = tuple(fleet.traits[name] for name in REQUIRED)
        found.append(Ask(amounts, required, fleet.traits[DISABLED_TRAIT], CandidateQuery((group,))))
    return found


def by_loop(connection: Connection, ask: Ask) -> set[str]:
    """Load every host, as schedulers did, and look at one after the other."""
    held = allocations.c
    used = sa.select(held.provider_id, held.resource_class_id, sa.func.sum(held.used))
    stock: dict[int, dict[int, int]] = {}
    for row in connection.execute(sa.select(inventories)):
        capacity = int((row.total - row.reserved) * row.allocation_ratio)
        stock.setdefault(row.provider_id, {})[row.resource_class_id] = capacity
    for provider, number, amount in connection.execute(
        used.group_by(held.provider_id, held.resource_class_id)
    ):
        stock[provider][number] -= int(amount)
    # Of the forty traits of a host only those that are asked for: the loop is not made slower than need be.
    asked = provider_traits.c.trait_id.in_((*ask.required, ask.forbidden))
    traits: dict[int, set[int]] = {}
    for provider, trait in connection.execute(sa.select(provider_traits).where(asked)):
        traits.setdefault(provider, set()).add(trait)
    found = set()
    for provider in connection.execute(sa.select(resource_providers.c.id, resource_providers.c.uuid)):
        free = stock.get(provider.id, {})
        has = traits.get(provider.id, set())
        if (
            all(free.get(number, 0) >= amount for number, amount in ask.amounts.items())
            and has.issuperset(ask.required)
            and ask.forbidden not in has
        ):
            found.add(provider.uuid)
    return found


def by_where(connection: Connection, ask: Ask) -> set[str]:
    """Let the database find them, in one statement."""
    provider = resource_providers.c.id
    query = sa.select(resource_providers.c.uuid)
    for number, amount in ask.amounts.items():
        stock, held = inventories.alias(), allocations.alias()
        used = (
            sa.select(sa.func.coalesce(sa.func.sum(held.c.used), 0))
            .where(held.c.provider_id == provider, held.c.resource_class_id == number)
            .scalar_subquery()
        )
        query = query.join(
            stock, (stock.c.provider_id == provider) & (stock.c.resource_class_id == number)
        ).where((stock.c.total - stock.c.reserved) * stock.c.allocation_ratio - used >= amount)
    for trait in ask.required:
        query = query.where(_has(trait))
    return set(connection.execute(query.where(~_has(ask.forbidden))).scalars())


def by_fleet(fleet: Fleet, ask: Ask) -> set[str]:
    """Ask the fleet."""
    return {fleet.uuid(row) for row in CandidateSearch(fleet, ask.query).anchors.tolist()}


def measure(store: Store, plans: Sequence[FleetPlan], seconds: float) -> Report:
    """Find the hosts in each way, so many seconds long each. Raises `StorageError`."""
    rows = []
    wrong: list[str] = []
    for plan in plans:
        tell(f"filters: {plan}")
        work = partial(_row, plan=plan, seconds=seconds, wrong=wrong)
        with store.copy(plan, "roost") as url:
            database = Database(url, read_only=True)
            try:
                rows.append(database.read_now(work))
            finally:
                asyncio.run(database.close())
    return report(
        "filters",
        "Hosts that can hold a request, found in three ways",
        COLUMNS,
        rows,
        {"database": store.kind, "seconds": seconds},
        wrong=wrong,
    )


def _row(connection: Connection, plan: FleetPlan, seconds: float, wrong: list[str]) -> Row:
    fleet = load(connection)
    wanted = asks(fleet)
    for ask in wanted:
        loop, where, ours = by_loop(connection, ask), by_where(connection, ask), by_fleet(fleet, ask)
        if not loop == where == ours:
            wrong.append(f"{plan}: loop {len(loop)}, where {len(where)}, fleet {len(ours)} hosts")
    loop_ms = _median(lambda ask: by_loop(connection, ask), wanted, seconds)
    where_ms = _median(lambda ask: by_where(connection, ask), wanted, seconds)
    fleet_ms = _median(lambda ask: by_fleet(fleet, ask), wanted, seconds)
    return Row(
        hosts=plan.hosts,
        found=len(by_fleet(fleet, wanted[0])),
        loop_ms=loop_ms,
        where_ms=where_ms,
        fleet_ms=fleet_ms,
        loop_ratio=loop_ms / fleet_ms,
        where_ratio=where_ms / fleet_ms,
    )


def _median(find: Callable[[Ask], object], wanted: Sequence[Ask], seconds: float) -> float:
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < LEAST or time.perf_counter() < until:
        started = time.perf_counter()
        find(wanted[len(times) % len(wanted)])
        times.append(time.perf_counter() - started)
    return float(np.median(times)) * 1000


def _has(trait: int) -> sa.ColumnElement[bool]:
    having = provider_traits.alias()
    return sa.exists().where(having.c.provider_id == resource_providers.c.id, having.c.trait_id == trait)
