"""A worker process of the scheduler: it opens placement, the hosts and the records, and serves decisions."""

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from roost.auth.rules import Rules
from roost.cells import Cell
from roost.conductor.cell_mappings import CELL0
from roost.conductor.open_cells import OpenCells
from roost.ledger import Ledger
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.placement.http.edge import with_edge
from roost.scheduling.hosts.hosts import Hosts
from roost.scheduling.http.app import create_app, default_rules
from roost.scheduling.http.service import Service
from roost.scheduling.opening import (
    open_database,
    open_deciding,
    open_placement,
    open_recording,
    run_beside,
)
from roost.scheduling.options import SchedulingOptions, shown_options
from roost.scheduling.readiness import scheduling_health
from roost.serving import worker
from roost.serving.supervision import Cause
from roost.serving.worker import Served

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
        placement = await open_placement(stack, options)
        ledger = placement if isinstance(placement, Ledger) else None
        api = None
        cells: Iterable[Cell] = ()
        if options.api_database is not None:
            api = open_database(stack, options.api_database, options)
            opened = OpenCells(
                api,
                options.source,
                without=frozenset((CELL0,)),
                answer_seconds=options.http.answer_seconds,
            )
            stack.push_async_callback(opened.close)
            await opened.refresh()
            run_beside(stack, opened.run())
            cells = opened.values()
        records = await open_recording(stack, options)
        scheduler, hosts = await open_deciding(stack, options, placement, records, cells, api)
        service = Service(scheduler, records, options.scheduler, ledger, hosts.refresh)
        rules = Rules(default_rules(), options.source, options.http.enforce_new_defaults)
        application = create_app(service, open_authenticator(options.http), rules, options.http)
        health = scheduling_health(placement, hosts, options.http)
        return Served(
            with_edge(application, ledger, options.http, health),
            health,
            sections={"scheduler": partial(_describe, placement, hosts)},
            stop=() if ledger is None else (partial(ledger.database.stop_within, STOP_SECONDS),),
        )


def _describe(placement: Ledger | HttpPlacement, hosts: Hosts) -> dict[str, object]:
    found: dict[str, object] = {"hosts": len(hosts.table), "node_version": hosts.table.version}
    if isinstance(placement, Ledger):
        found["database"] = str(placement.database)
        found.update(msgspec.structs.asdict(placement.status()))
    return found
