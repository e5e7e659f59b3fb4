"""A worker process of the scheduler: it opens placement, the hosts and the records, and serves decisions."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
import structlog

from roost.auth.rules import Rules
from roost.cells import Cell
from roost.conductor.aggregates.store import AggregateStore
from roost.conductor.node_feed import NodeFeed
from roost.conductor.requests import Requests
from roost.conductor.server_groups.store import ServerGroups
from roost.conductor.super_conductor import CELL0
from roost.ledger import Ledger
from roost.metrics import catalogue as metrics
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.placement.http.edge import with_edge
from roost.records import RecordQueue, RecordsError, open_records
from roost.scheduler import Scheduler
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.foreign_groups import Members, no_members
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes import NodeTable
from roost.scheduler.sources.reported import ReportedGateway
from roost.scheduler.sources.switching import SwitchingGateway
from roost.scheduling.hosts.hosts import Hosts
from roost.scheduling.hosts.roots import HttpRoots, LedgerRoots, RootSource
from roost.scheduling.http.app import create_app, default_rules
from roost.scheduling.http.service import Service
from roost.scheduling.options import SchedulingOptions, open_conf, shown_options
from roost.scheduling.readiness import scheduling_health
from roost.serving import worker
from roost.serving.supervision import Cause
from roost.serving.worker import Served
from roost.storage import Database

TRIM_SECONDS = 60.0
"""Seconds between two removals of old records."""

_log = structlog.get_logger()

STOP_SECONDS = 1.0
"""Seconds that the ledger's database has for each answer after SIGTERM or SIGINT."""


class Worker(worker.Worker):
    """Serves the scheduler's operations."""

    def __init__(
        self,
        options: SchedulingOptions,
        report: Callable[[str | None], None] = lambda _: None,
        metrics: Path | None = None,
        cause: Cause = "start",
        drain_seconds: float = 10.0,
    ) -> None:
        super().__init__(
            options.http.tracing, partial(shown_options, options), report, metrics, cause, drain_seconds
        )
        self._options = options

    async def open(self, stack: AsyncExitStack) -> Served:
        options = self._options
        placement = await self._placement(stack)
        ledger = placement if isinstance(placement, Ledger) else None
        table = NodeTable()
        api = None if options.api_database is None else self._database(stack, options.api_database)
        feed = None
        if api is not None:
            feed = await self._feed(stack, api, table)
            stack.push_async_callback(feed.close)
        roots: RootSource | None = None
        if options.hosts_from_placement:
            of = LedgerRoots if isinstance(placement, Ledger) else HttpRoots
            roots = of(placement, options.placement_hosts_seconds)  # type: ignore[arg-type]
        hosts = Hosts(table, feed, roots)
        await hosts.refresh_all()
        records = await open_records(open_conf(options.source))
        stack.push_async_callback(records.close)
        members = no_members if api is None else ServerGroups(api).members
        gateway = SwitchingGateway(_gateway(placement, members), ReportedGateway())
        scheduler = Scheduler(gateway, table, records, options.scheduler)
        service = Service(scheduler, records, options.scheduler, ledger, hosts.refresh)
        rules = Rules(default_rules(), options.source, options.http.enforce_new_defaults)
        application = create_app(service, open_authenticator(options.http), rules, options.http)
        health = scheduling_health(placement, hosts, options.http)
        running = asyncio.create_task(hosts.run())
        stack.push_async_callback(_ended, running)
        trimming = asyncio.create_task(_trim(records))
        stack.push_async_callback(_ended, trimming)
        metrics.WAITING_RECORDS.follow(lambda: records.waiting)
        return Served(
            with_edge(application, ledger, options.http, health),
            health,
            sections={"scheduler": partial(_describe, placement, hosts)},
            stop=() if ledger is None else (partial(ledger.database.stop_within, STOP_SECONDS),),
        )

    async def _placement(self, stack: AsyncExitStack) -> Ledger | HttpPlacement:
        if self._options.database is None:
            return await stack.enter_async_context(HttpPlacement.configured(self._options.source))
        ledger = await Ledger.open(self._database(stack, self._options.database))
        stack.push_async_callback(ledger.close)
        return ledger

    async def _feed(self, stack: AsyncExitStack, api: Database, table: NodeTable) -> NodeFeed:
        """The feed from the cells that the conductors have."""
        cells = await Requests(api).cells()
        return NodeFeed(
            [Cell(name, self._database(stack, url)) for name, url in cells.items() if name != CELL0],
            table,
            journal=api,
            aggregates=AggregateStore(api),
            retention=self._options.http.retention,
            down_seconds=self._options.scheduler.service_down_time,
            clock=time.time,
        )

    def _database(self, stack: AsyncExitStack, url: str) -> Database:
        database = Database(url, answer_seconds=self._options.http.answer_seconds)
        stack.push_async_callback(database.close)
        return database


def _gateway(placement: Ledger | HttpPlacement, members: Members) -> Gateway:
    return LocalGateway(placement) if isinstance(placement, Ledger) else HttpGateway(placement, members)


async def _trim(records: RecordQueue) -> None:
    """Remove records that are older than the options keep, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        try:
            await records.backend.trim(time.time())
        except RecordsError as error:
            _log.warning("old records are removed later", error=str(error))


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _describe(placement: Ledger | HttpPlacement, hosts: Hosts) -> dict[str, object]:
    found: dict[str, object] = {"hosts": len(hosts.table), "node_version": hosts.table.version}
    if isinstance(placement, Ledger):
        found["database"] = str(placement.database)
        found.update(msgspec.structs.asdict(placement.status()))
    return found
