"""A worker process of the scheduler: it opens the scheduler and serves its API."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial

import msgspec

from roost.ledger import Ledger
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.scheduler.api.app import create_app, default_rules
from roost.scheduler.api.kept_answers import SchedulerAnswers
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.server.placement.edge import with_edge
from roost.server.scheduler.assembly import (
    Deciding,
    open_database,
    open_deciding,
    open_placement,
    open_recording,
)
from roost.server.scheduler.options import SchedulingOptions
from roost.server.scheduler.readiness import scheduling_health
from roost.server.scheduler.runtime import run_for_ever
from roost.server.workers.worker import ServedApplication
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.open_cells import OpenCells
from roost.state.cell_database import Cell
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application


async def open_scheduler(options: SchedulingOptions, stack: AsyncExitStack) -> ServedApplication:
    """Open placement, the hosts and the records, and serve decisions. Raises `OperatorError`."""
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
            answer_seconds=options.answer_seconds,
        )
        stack.push_async_callback(opened.close)
        await opened.refresh()
        run_for_ever(stack, "cells", opened.run())
        cells = opened.values()
    records = await open_recording(stack, options)
    deciding = await open_deciding(stack, options, placement, records, cells, api)
    answers = SchedulerAnswers(api)
    stack.push_async_callback(answers.close)
    application = scheduling_application(
        deciding, records, options, placement, open_authenticator(options), answers, documented=True
    )
    health = scheduling_health(placement, deciding.hosts, options)
    return ServedApplication(
        with_edge(application, ledger, options, health),
        health,
        sections={"scheduler": partial(_describe, placement, deciding.hosts)},
        databases=() if ledger is None else (ledger.database,),
    )


def scheduling_application(
    deciding: Deciding,
    records: RecordQueue,
    options: SchedulingOptions,
    placement: Ledger | HttpPlacement,
    authenticator: Authenticator,
    answers: SchedulerAnswers,
    *,
    documented: bool,
) -> Application:
    """Return the API of a scheduler.

    ``answers``: stores the answers to requests with an idempotency key. ``documented``: with its OpenAPI
    document.

    Raises `OperatorError` for a policy file that cannot be used.
    """
    ledger = placement if isinstance(placement, Ledger) else None
    service = SchedulerService(
        deciding.scheduler,
        records,
        options.scheduler,
        ledger,
        deciding.hosts.refresh,
        placement=PlacementService(placement) if isinstance(placement, Ledger) else placement,
    )
    rules = PolicyRules(default_rules(), options.source, options.enforce_new_defaults)
    return create_app(service, authenticator, rules, options, answers=answers, documented=documented)


def _describe(placement: Ledger | HttpPlacement, hosts: ServiceHosts) -> dict[str, object]:
    found: dict[str, object] = {"hosts": len(hosts.table), "node_version": hosts.table.version}
    if isinstance(placement, Ledger):
        found["database"] = str(placement.database)
        found.update(msgspec.structs.asdict(placement.status()))
    return found
