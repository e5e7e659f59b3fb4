"""The bridge to an existing Nova cloud: its cells, the hosts of its databases, and its calls."""

import asyncio
import mmap
import os
import signal
from collections.abc import Sequence
from functools import partial

import structlog

from roost.model.errors import OperatorError
from roost.nova.database.cells import NovaCells
from roost.nova.database.groups import read_members
from roost.nova.decisions import AnswerOptions, NovaDecisions
from roost.nova.feed import NovaFeed
from roost.nova.instance_source import CellInstances
from roost.nova.networks import NovaNetworks
from roost.nova.releases import check_cloud
from roost.nova.service_row import OwnServiceRow, SchedulerHostTaken
from roost.process.metrics import nova_bridge as metrics
from roost.scheduler import Scheduler
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.scheduler.nodes.table import NodeTable
from roost.server.nova_options import NovaSchedulerOptions
from roost.server.process import Process, ProcessPart, prepare_database
from roost.server.workers.worker import STOP_SECONDS
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database, DatabaseMisconfigured, DatabaseUrl, StorageError
from roost.web.health import HealthCheck

_log = structlog.get_logger()

BROKER_PAUSE_SECONDS = 5.0
"""Seconds until a broker that refused the connection is tried again."""

_CHECKED = mmap.mmap(-1, 1)
"""A byte that is not 0 once the name of this scheduler is checked, in the memory of parent and workers."""


class BridgeDatabasePart(ProcessPart[NovaSchedulerOptions]):
    """The bridge's own database, which has the tables of an API database."""

    def prepare(self, options: NovaSchedulerOptions) -> None:
        assert options.api_database is not None
        prepare_database(options.api_database, schema=SCHEMA)

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        assert process.options.api_database is not None
        process.api = process.open_database(process.options.api_database)


class NovaHostsPart(ProcessPart[NovaSchedulerOptions]):
    """Nova's cells, and the hosts of a scheduler as their databases have them."""

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        options, bridge = process.options, process.options.bridge
        api = Database(options.nova_api, deferred=True, create=False, answer_seconds=bridge.answer_seconds)
        process.stack.push_async_callback(api.close)
        process.databases.append(api)
        process.nova_cells = cells = NovaCells(api, options.nova_main, bridge.answer_seconds)
        process.stack.push_async_callback(cells.close)
        table = NodeTable()
        process.nova_feed = feed = NovaFeed(
            cells,
            table,
            bridge,
            down_seconds=options.scheduler.service_down_time,
            image_properties="ImagePropertiesWeigher" in options.scheduler.multipliers,
            journal=process.api,
            retention=options.retention,
            clock=process.clock,
        )
        process.stack.push_async_callback(feed.close)
        process.words, process.words_before_runs = feed.words, True
        process.members = partial(_members, api)
        process.hosts = ServiceHosts(table, feed, None)
        await feed.refresh()
        for warning in await check_cloud(cells):
            _log.warning(warning)
        process.run_for_ever("hosts", feed.run())
        process.sections["nova"] = partial(_describe, feed)
        metrics.NOVA_OUTSTANDING.follow(lambda: len(table.outstanding))
        metrics.NOVA_UNMAPPED_HOSTS.follow(lambda: len(feed.unmapped_hosts))
        metrics.NOVA_CELLS_DOWN.follow(lambda: len(feed.cells_down))
        metrics.NOVA_CELL_AGE.follow(lambda: feed.oldest_age)

    def readiness(self, process: Process[NovaSchedulerOptions]) -> Sequence[HealthCheck]:
        feed = process.nova_feed
        return (HealthCheck("hosts", judge=lambda _: _verdict(feed)),)


class NovaServicePart(ProcessPart[NovaSchedulerOptions]):
    """The row of this scheduler in Nova's table of services, and its signs of life.

    The program checks once that no other scheduler has its name: before it serves, or else when the database
    is back. After that a row that is up is that of an earlier worker process.
    """

    def prepare(self, options: NovaSchedulerOptions) -> None:
        if _has_row(options):
            asyncio.run(_check_row(options))

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        options = process.options
        if not _has_row(options):
            return
        row = _own_row(options, process.open_database(_main(options)))
        process.stack.push_async_callback(row.stop)
        process.run_for_ever("service row", _keep(row, options.nova.report_interval))


class NovaCallsPart(ProcessPart[NovaSchedulerOptions]):
    """The answers to Nova's calls over the message broker; none in shadow mode."""

    def check(self, options: NovaSchedulerOptions) -> None:
        try:
            import roost.nova.rpc.oslo  # noqa: F401 - only a process of this command needs the extra
        except ImportError as error:
            raise OperatorError(
                "oslo.messaging is not installed: install Roost with the extra nova, 'roost[nova]'"
            ) from error

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        options = process.options
        if options.is_shadow:
            return
        from roost.nova.rpc.server import SchedulerRpcServer
        from roost.nova.rpc.transport import open_transport

        decide = open_decisions(process)
        transport = open_transport(options.source.files)
        process.nova_rpc = server = SchedulerRpcServer(transport, options.host, decide, process.nova_feed)
        # Calls in work are decided to the end; only then have databases less time.
        process.hurries = False
        process.stack.callback(_hurry, process.databases)
        seconds = options.nova.graceful_shutdown_timeout
        process.stack.push_async_callback(server.stop, seconds or None)
        process.run_for_ever("calls", _take_calls(process))

    def readiness(self, process: Process[NovaSchedulerOptions]) -> Sequence[HealthCheck]:
        if process.options.is_shadow:
            return ()
        server = process.nova_rpc

        def judge(_: Exception | None) -> str | None:
            if not process.nova_feed.is_loaded:
                return "no call is taken before the hosts are read"
            if server.connected:
                return None
            if not server.listening:
                return "no call is taken: the message broker is being connected, or the process ends"
            return f"no message of the broker has arrived for {server.silent_seconds:.0f} s"

        return (HealthCheck("broker", judge=judge),)


def _hurry(databases: Sequence[Database]) -> None:
    for database in databases:
        database.stop_within(STOP_SECONDS)


async def _take_calls(process: Process[NovaSchedulerOptions]) -> None:
    """Take calls once the hosts are read: until then other schedulers get them."""
    await process.nova_feed.loaded()
    server = process.nova_rpc
    while not server.listening:
        try:
            await server.start()
        except OperatorError as error:
            _log.error("no call is taken yet; the start is tried again", error=str(error))
            await asyncio.sleep(BROKER_PAUSE_SECONDS)
    await asyncio.Event().wait()


def open_decisions(process: Process[NovaSchedulerOptions]) -> NovaDecisions:
    """Return the decisions of Nova's calls, given the open parts of a process that has a scheduler."""
    options = process.options
    assert isinstance(process.scheduler, Scheduler)
    networks = NovaNetworks.configured(options.source, options.scheduler)
    process.stack.push_async_callback(networks.close)
    return NovaDecisions(
        process.scheduler,
        process.placement,
        process.records,
        CellInstances(process.nova_cells),
        AnswerOptions(
            options.nova.max_attempts,
            options.bridge.public_reasons,
            options.scheduler.default_availability_zone,
        ),
        process.nova_feed,
        checked=process.ledger is None,
        filled=networks.filled,
    )


def _has_row(options: NovaSchedulerOptions) -> bool:
    return options.bridge.service_row and not options.is_shadow


def _main(options: NovaSchedulerOptions) -> DatabaseUrl:
    if options.nova_main is None:
        raise OperatorError(
            "no database for the row in services: set connection in [database] as nova.conf has it, or "
            "service_row = false in [nova_bridge]"
        )
    return options.nova_main


def _own_row(options: NovaSchedulerOptions, database: Database) -> OwnServiceRow:
    return OwnServiceRow(
        database,
        options.host,
        report_seconds=options.nova.report_interval,
        down_seconds=options.nova.service_down_time,
    )


async def _check_row(options: NovaSchedulerOptions) -> None:
    """Check that no other scheduler of this name is up, unless that was done. Raises `OperatorError`."""
    if _CHECKED[0]:
        return
    database = Database(_main(options), create=False, deferred=True)
    try:
        await _own_row(options, database).check()
        _CHECKED[0] = 1
    except DatabaseMisconfigured:
        raise
    except StorageError as error:
        _log.warning("Nova's table of services cannot be checked", error=str(error))
    finally:
        await database.close()


async def _keep(row: OwnServiceRow, seconds: float) -> None:
    """Write the row until cancelled. The scheduler serves while its database is away."""
    while True:
        checked = bool(_CHECKED[0])
        try:
            await row.start(checked=checked)
        except SchedulerHostTaken as error:
            if not checked:
                _log.error("the program ends: its name is taken", error=str(error))
                os.kill(os.getppid(), signal.SIGTERM)
                await asyncio.Event().wait()
            await asyncio.sleep(seconds)  # the replaced worker has reported just now
        except StorageError as error:
            _log.warning("the row in services is written later", error=str(error))
            await asyncio.sleep(seconds)
        else:
            _CHECKED[0] = 1
            await row.run()
            # Somebody has deleted it; it comes back with the next start, as with Nova's own services. Or
            # the next worker process has it.
            await asyncio.Event().wait()


async def _members(api: Database, group: str) -> list[str]:
    return await api.read(read_members(group))


def _verdict(feed: NovaFeed) -> str | None:
    """Return why no host is known; one cell that answers is enough."""
    if not feed.ages:
        return "no cell of Nova is known: its API database cannot be read, or has no cell mappings"
    if not feed.is_loaded:
        return "the hosts of Nova's cells are being read"
    if len(feed.cells_down) == len(feed.ages):
        return "no cell of Nova answers; the log has the errors"
    return None


def _describe(feed: NovaFeed) -> dict[str, object]:
    """Return the state of the feed, for the report of a process."""
    return {
        "seconds_since_read": dict(feed.ages),
        "rows_read": dict(feed.rows_read),
        "cells_down": dict(feed.cells_down),
    }
