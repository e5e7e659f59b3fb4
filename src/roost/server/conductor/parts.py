"""Opens the parts of conductors, for their own programs and for `roost up`."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

import falcon.asgi
from msgspec.structs import replace

from roost.conductor import http as conductor_http
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.mirror import AggregateMirror
from roost.conductor.cell_conductor import CellConductor
from roost.conductor.neighbours import Neighbours
from roost.conductor.super_conductor import SuperConductor
from roost.conductor.words.words import Words
from roost.placement.interface import Placement
from roost.process.metrics import catalogue as metrics
from roost.records import RecordQueue
from roost.server.conductor.assembly import ConductorServices
from roost.server.conductor.options import ConductingOptions
from roost.server.scheduler.runtime import RUNTIME, Runtime, run_for_ever
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.requests import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.state.cell_database import Cell
from roost.storage import Database
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules


class Conducting(NamedTuple):
    """A super conductor, and the services that its API uses beside it."""

    conductor: SuperConductor
    requests: Requests
    aggregates: HostAggregates
    groups: ServerGroups
    placement: Placement
    records: RecordQueue
    neighbours: Neighbours


async def open_cells(
    stack: AsyncExitStack,
    options: ConductingOptions,
    api: Database,
    records: RecordQueue,
    runtime: Runtime = RUNTIME,
) -> OpenCells:
    """Open the cells that the API database names, and follow its mappings.

    Raises `StorageError` of the API database.
    """
    cells = OpenCells(
        api, options.source, records, answer_seconds=options.answer_seconds, clock=runtime.clock
    )
    stack.push_async_callback(cells.close)
    await cells.refresh()
    run_for_ever(stack, "cells", cells.run(), runtime)
    return cells


def open_agents(
    stack: AsyncExitStack,
    options: ConductingOptions,
    cell: Cell,
    placement: Placement,
    records: RecordQueue,
    runtime: Runtime = RUNTIME,
    *,
    api: Database | None = None,
    poll_seconds: float | None = None,
) -> AgentService:
    """Open the service that the agents of a cell call.

    ``api``: the API database, if this process has it. ``poll_seconds``: the longest wait of a poll.
    """
    times = EndpointTimes(build=options.time_limits.build_seconds)
    if poll_seconds is not None:
        times = replace(times, poll=poll_seconds)
    agents = AgentService(
        cell,
        placement,
        records,
        sharing=options.sharing_providers,
        api=api,
        limits=options.offers,
        times=times,
        clock=runtime.clock,
    )
    run_for_ever(stack, f"agents of {cell.name}", agents.run(), runtime)
    return agents


def open_cell_conductor(
    stack: AsyncExitStack,
    options: ConductingOptions,
    cell: Cell,
    asked: ConductorServices,
    records: RecordQueue,
    runtime: Runtime = RUNTIME,
    *,
    alone: bool = False,
) -> CellConductor:
    """Run a conductor of a cell. ``alone``: no other process runs one, so its earlier leases are free."""
    conductor = CellConductor(
        cell,
        asked.placement,
        asked.scheduler,
        records,
        limits=options.time_limits,
        alone=alone,
        clock=runtime.clock,
    )
    stack.push_async_callback(conductor.close)
    run_for_ever(stack, f"conductor of {cell.name}", conductor.run(), runtime)
    return conductor


def open_aggregates(
    api: Database, cells: OpenCells, placement: Placement, clock: Callable[[], float] = time.time
) -> tuple[HostAggregates, AggregateMirror]:
    """Open the host aggregates, and the task that writes their members to placement; the caller runs it."""
    words = Words(api, cells, placement, clock)
    aggregates = HostAggregates(AggregateStore(api), cells.values(), placement, words)
    return aggregates, AggregateMirror(aggregates.store, placement, aggregates.nodes, aggregates.changed)


async def open_super_conductor(
    stack: AsyncExitStack,
    options: ConductingOptions,
    api: Database,
    cells: OpenCells,
    asked: ConductorServices,
    records: RecordQueue,
    aggregates: HostAggregates,
    runtime: Runtime = RUNTIME,
    *,
    alone: bool = False,
) -> Conducting:
    """Run a super conductor. ``alone``: no other process runs one, so its earlier leases are free.

    Raises `StorageError` of the API database.
    """
    conductor = SuperConductor(
        api,
        asked.scheduler,
        asked.placement,
        cells,
        records=records,
        max_attempts=options.max_attempts,
        history_days=options.time_limits.history_days,
        audits=options.audits,
        clock=runtime.clock,
    )
    stack.push_async_callback(conductor.close)
    aggregates.words.follow(conductor.watch)
    run_for_ever(stack, "words", aggregates.words.mirror.run(), runtime)
    await conductor.begin(alone=alone)
    await conductor.resume()
    metrics.BUILD_REQUESTS.follow(lambda: conductor.in_progress)
    neighbours = Neighbours.configured(options.source)
    stack.push_async_callback(neighbours.close)
    groups = ServerGroups(api)
    return Conducting(conductor, Requests(api), aggregates, groups, asked.placement, records, neighbours)


def conductor_application(
    conducting: Conducting, options: ConductingOptions, authenticator: Authenticator, *, documented: bool
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the API of instances, hosts, aggregates and groups. ``documented``: with its OpenAPI document.

    Raises `OperatorError` for a policy file that cannot be used.
    """
    rules = PolicyRules(conductor_http.default_rules(), options.source, options.enforce_new_defaults)
    return conductor_http.create_app(
        conducting.conductor,
        conducting.requests,
        conducting.aggregates,
        conducting.groups,
        conducting.placement,
        authenticator,
        rules,
        options,
        records=conducting.records,
        neighbours=conducting.neighbours,
        documented=documented,
    )
