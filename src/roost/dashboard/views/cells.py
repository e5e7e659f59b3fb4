"""Cells and processes: their states, features that are held back, the audit, and the lag of databases."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from sqlalchemy.engine import Connection

from roost.conductor.hosts.watch import held_back_by
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.dashboard.views.cloud_cells import seen_cells
from roost.ledger.status import LedgerStatus
from roost.model.service_version import FEATURES
from roost.state.api_database.audit import (
    AuditFinding,
    Repair,
    read_audit_state,
    read_findings,
    read_repairs,
)
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database.state_changes import has_unnumbered
from roost.web.request import Request

T = TypeVar("T")

MOST_FINDINGS = 20
"""Findings and repairs of the audit on the page at most."""

MOST_NAMED = 5
"""Processes that hold a feature back and are named, at most."""


class ListedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell. ``instances``: by state; it and ``enabled`` are None while the cell cannot be asked.

    ``hosts``: those with an agent's session; ``hosts_up``: of these. ``conductors``: those that are up.
    ``said_at``: when an operator has enabled or disabled it last, in seconds since the epoch.
    """

    name: str
    section: str | None
    state: str
    enabled: bool | None
    reason: str | None
    said_at: float | None
    conductors: int
    hosts: int
    hosts_up: int
    instances: dict[str, int] | None


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process by its lease. ``cell``: None: its lease is in the API database. ``epoch``: the number of
    holders of the lease so far. ``since``: seconds since the epoch."""

    name: str
    kind: str
    host: str
    cell: str | None
    state: str
    version: int
    since: float
    holder: str
    epoch: int


class FeatureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that waits for the version ``since`` of all processes. ``held_back_by``: the number of those
    of earlier versions, the first of which are ``named``."""

    name: str
    what: str
    since: int
    held_back_by: int
    named: tuple[str, ...]


class AuditPart(msgspec.Struct, frozen=True, kw_only=True):
    """The last round of the audit. ``round``: its number, 0 before the first one has ended.

    ``findings``, ``repairs``: the first ones, of ``found`` and of all. ``running``: a round is under way.
    """

    round: int
    running: bool
    ended_at: float
    found: int
    instances: int
    unread: dict[str, str]
    asks: str | None
    findings: tuple[AuditFinding, ...]
    repairs: tuple[Repair, ...]


class DatabaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A database as this process sees it now.

    ``milliseconds``: until it answered, None if it did not. ``waiting``: its newest changes of states are not
    among the events for programs yet, which takes a second.
    """

    name: str
    cell: str | None
    milliseconds: float | None
    waiting: bool = False


class CellsView(msgspec.Struct, frozen=True, kw_only=True):
    """Cells and processes. ``ledger``: the position of this process in it; None: placement is reached over
    HTTP."""

    at: float
    cells: tuple[ListedCell, ...]
    processes: tuple[ProcessRow, ...]
    features: tuple[FeatureRow, ...]
    audit: AuditPart
    databases: tuple[DatabaseRow, ...]
    ledger: LedgerStatus | None


@of_cloud
async def cells_view(service: DashboardService, cloud: CloudReads, req: Request) -> CellsView:
    """Return the cells and processes."""
    names = sorted(cloud.cells)
    cells, (part, of_api), databases = await asyncio.gather(
        _cells(service, cloud),
        _audit(cloud),
        asyncio.gather(*(_cell_database(cloud, name) for name in names)),
    )
    if service.ledger is not None:
        # So that its status is that of now.
        await service.ledger.current()
    return CellsView(
        at=service.clock(),
        cells=cells,
        processes=_processes(cloud),
        features=_features(cloud),
        audit=part,
        databases=(of_api, *databases),
        ledger=None if service.ledger is None else service.ledger.status(),
    )


async def _cells(service: DashboardService, cloud: CloudReads) -> tuple[ListedCell, ...]:
    return tuple(
        ListedCell(
            name=each.mapping.name,
            section=each.mapping.section,
            state=each.state,
            enabled=each.enabled,
            reason=each.reason,
            said_at=None if each.said is None else each.said.at,
            conductors=each.conductors,
            hosts=each.hosts,
            hosts_up=each.hosts_up,
            instances=None if each.counts is None else dict(sorted(each.counts.instances.items())),
        )
        for each in await seen_cells(service, cloud)
    )


def _processes(cloud: CloudReads) -> tuple[ProcessRow, ...]:
    return tuple(
        ProcessRow(
            name=each.lease.name,
            kind=each.lease.kind,
            host=each.lease.host,
            cell=each.cell,
            state=each.state,
            version=each.lease.service_version,
            since=each.lease.since,
            holder=each.lease.holder,
            epoch=each.lease.epoch,
        )
        for each in cloud.watch.services()
    )


def _features(cloud: CloudReads) -> tuple[FeatureRow, ...]:
    rows = []
    for each in FEATURES:
        older = held_back_by(cloud.watch, each)
        named = tuple(seen.lease.name for seen in older[:MOST_NAMED])
        rows.append(
            FeatureRow(name=each.name, what=each.what, since=each.since, held_back_by=len(older), named=named)
        )
    return tuple(rows)


async def _audit(cloud: CloudReads) -> tuple[AuditPart, DatabaseRow]:
    """Return the audit, and the time in which the API database has answered. Raises `StorageError`."""
    began = time.perf_counter()
    state = await cloud.api.read(read_audit_state())
    took = time.perf_counter() - began
    findings: Sequence[tuple[int, AuditFinding]] = ()
    if state.report.findings:
        findings = await cloud.api.read(read_findings(0, MOST_FINDINGS))
    repairs = await cloud.api.read(read_repairs(None, MOST_FINDINGS))
    report = state.report
    part = AuditPart(
        round=state.ended,
        running=state.begun > state.ended,
        ended_at=state.ended_at,
        found=report.findings,
        instances=report.instances,
        unread=dict(report.unread),
        asks=report.asks,
        findings=tuple(finding for _, finding in findings),
        repairs=tuple(repairs),
    )
    return part, DatabaseRow(name="API database", cell=None, milliseconds=1000 * took)


async def _cell_database(cloud: CloudReads, name: str) -> DatabaseRow:
    if name in cloud.watch.silent():
        # It is not waited for: each page would.
        return DatabaseRow(name=f"cell {name}", cell=name, milliseconds=None)
    found, took = await _timed(cloud, name, has_unnumbered())
    if found is None:
        return DatabaseRow(name=f"cell {name}", cell=name, milliseconds=None)
    return DatabaseRow(name=f"cell {name}", cell=name, milliseconds=1000 * took, waiting=found)


async def _timed(cloud: CloudReads, name: str, work: Callable[[Connection], T]) -> tuple[T | None, float]:
    began = time.perf_counter()
    found = await ask_cell(cloud.cells.get(name), work)
    return found, time.perf_counter() - began
