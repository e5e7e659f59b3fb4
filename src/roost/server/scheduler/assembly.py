"""Opens placement, the cells' nodes, and a scheduler on both."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

import structlog

from roost.fleet.feasibility import feasibilities
from roost.ledger import Ledger
from roost.ledger.capacity_metrics import CapacityMetrics
from roost.placement.client import HttpPlacement
from roost.process.metrics import catalogue as metrics
from roost.records import RecordQueue, RecordsError, open_records
from roost.scheduler import Scheduler
from roost.scheduler.candidates.reported_gateway import ReportedGateway
from roost.scheduler.candidates.source_choice import SwitchingGateway
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.foreign_groups import Members, no_members
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.gateways.word_checks import UnconditionalGateway, WordCheckedGateway
from roost.scheduler.nodes.feed import NodeFeed
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.nodes.roots import HttpRoots, LedgerRoots, RootSource
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.nodes.zones import zones
from roost.scheduler.selection.host_pools import HostPools
from roost.server.scheduler.options import SchedulingOptions, open_conf
from roost.server.scheduler.runtime import RUNTIME, Runtime, run_beside, run_for_ever
from roost.state.api_database.operator_words import WordStore
from roost.state.api_database.server_groups import ServerGroups
from roost.state.cell_database import Cell
from roost.storage import Database, DatabaseUrl

TRIM_SECONDS = 60.0
"""Seconds between two removals of old records."""

_log = structlog.get_logger()


class Deciding(NamedTuple):
    """A scheduler, and the hosts that it selects from."""

    scheduler: Scheduler
    hosts: ServiceHosts


def open_database(stack: AsyncExitStack, url: DatabaseUrl | str, options: SchedulingOptions) -> Database:
    """Open a database. Raises `StorageError`."""
    database = Database(url, answer_seconds=options.answer_seconds)
    stack.push_async_callback(database.close)
    return database


async def open_placement(stack: AsyncExitStack, options: SchedulingOptions) -> Ledger | HttpPlacement:
    """Open the ledger; if none is configured, connect to a placement service over HTTP."""
    if options.database is None:
        return await stack.enter_async_context(HttpPlacement.configured(options.source))
    return await open_ledger(stack, open_database(stack, options.database, options))


async def open_ledger(
    stack: AsyncExitStack, database: Database, clock: Callable[[], float] = time.time
) -> Ledger:
    """Open the ledger of a database. Raises `StorageError`."""
    ledger = await Ledger.open(database, clock)
    stack.push_async_callback(ledger.close)
    return ledger


async def open_recording(stack: AsyncExitStack, options: SchedulingOptions) -> RecordQueue:
    """Open the records, and remove expired ones periodically."""
    records = await open_records(open_conf(options.source))
    keep_records(stack, records)
    return records


def keep_records(
    stack: AsyncExitStack,
    records: RecordQueue,
    every_seconds: float = TRIM_SECONDS,
    clock: Callable[[], float] = time.time,
) -> None:
    """Remove expired records periodically, and close the records with the stack."""
    stack.push_async_callback(records.close)
    run_beside(stack, _trim(records, every_seconds, clock))
    metrics.WAITING_RECORDS.follow(lambda: records.waiting)


async def open_deciding(
    stack: AsyncExitStack,
    options: SchedulingOptions,
    placement: Ledger | HttpPlacement,
    records: RecordQueue,
    cells: Iterable[Cell],
    api: Database | None,
    *,
    runtime: Runtime = RUNTIME,
    around: Callable[[Gateway], Gateway] = lambda gateway: gateway,
    seeds: Callable[[], int] | None = None,
) -> Deciding:
    """Open a scheduler and keep its hosts up to date.

    ``cells``: the cells whose nodes are hosts; they may change. ``api``: the API database, which has
    aggregates and groups and takes the node journal; None: there is none, and no cell is read. ``around``:
    wraps the gateway of the scheduler. ``seeds``: seeds of its runs, by default random ones.
    """
    table = NodeTable()
    feed = None
    if api is not None:
        feed = NodeFeed(
            cells,
            table,
            journal=api,
            source=WordStore(api),
            retention=options.retention,
            down_seconds=options.scheduler.service_down_time,
            clock=runtime.clock,
        )
        stack.push_async_callback(feed.close)
    roots: RootSource | None = None
    if options.hosts_from_placement:
        of = LedgerRoots if isinstance(placement, Ledger) else HttpRoots
        roots = of(placement, options.placement_hosts_seconds)  # type: ignore[arg-type]
    hosts = ServiceHosts(table, feed, roots)
    await hosts.refresh_all()
    run_for_ever(stack, "hosts", hosts.run(), runtime)
    if isinstance(placement, Ledger):
        of_hosts = partial(zones, table, options.scheduler.default_availability_zone)
        run_for_ever(stack, "capacity", CapacityMetrics(placement, of_hosts).run(), runtime)
    members = no_members if api is None else ServerGroups(api).members
    words = None if feed is None else feed.words
    pools = HostPools(table, options.scheduler)
    gateway = around(
        SwitchingGateway(_gateway(placement, pools, members, words), _looking(ReportedGateway(pools), words))
    )
    scheduler = Scheduler(gateway, records, runtime.clock, seeds=seeds, words=words)
    return Deciding(scheduler, hosts)


def _gateway(
    placement: Ledger | HttpPlacement, pools: HostPools, members: Members, words: OperatorWords | None
) -> Gateway:
    if isinstance(placement, Ledger):
        fleet = placement.known()
        if fleet.has_trees:
            # Prepared now, not in the first decision: it takes half a second for thousands of devices.
            feasibilities(fleet).prepare()
        return LocalGateway(placement, pools)
    return _looking(HttpGateway(placement, pools, members), words)


def _looking(gateway: UnconditionalGateway, words: OperatorWords | None) -> Gateway:
    return gateway if words is None else WordCheckedGateway(gateway, words)


async def _trim(records: RecordQueue, every_seconds: float, clock: Callable[[], float]) -> None:
    """Remove records past their retention periodically, until cancelled."""
    while True:
        await asyncio.sleep(every_seconds)
        try:
            await records.backend.trim(clock())
        except RecordsError as error:
            _log.warning("old records are removed later", error=str(error))
