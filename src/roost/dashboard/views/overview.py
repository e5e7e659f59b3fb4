"""The overview: what needs attention, capacity and use, decisions."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from roost.conductor.hosts.cells import SeenCell
from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.service import DashboardService
from roost.dashboard.views import attention
from roost.dashboard.views.attention import Attention
from roost.dashboard.views.hosts import failures_of_day
from roost.fleet import Fleet
from roost.model.vocabulary import is_custom
from roost.records import RecordsError
from roost.records.records import CountableRecords
from roost.records.summary import RunSummary
from roost.scheduler.nodes.host_states import DISABLED, UP
from roost.storage import StorageError
from roost.web.request import Request

MINUTES = 10
"""Minutes of which decisions and refusals are counted."""

MOST_RUNS = 5_000
"""Runs that are counted at most, the newest."""

MAIN_CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
"""Classes that come first, where hosts have them."""


class ClassCapacity(msgspec.Struct, frozen=True):
    """Amounts of a resource class, in units of the class.

    ``total``: of the machines; ``reserved``: kept by the hosts for themselves; ``capacity``: what may be
    allocated, with allocation ratios; ``used``: allocated. ``providers``: the number that have it.
    """

    resource_class: str
    used: int
    capacity: int
    reserved: int
    total: int
    providers: int


class PlaceCapacity(msgspec.Struct, frozen=True):
    """Capacity and use of the hosts of a zone or cell: used and capacity by class. ``up``: hosts that are
    up, None if that is not known."""

    name: str
    hosts: int
    up: int | None
    classes: Mapping[str, tuple[int, int]]


class OverviewView(msgspec.Struct, frozen=True, kw_only=True):
    """The overview.

    ``version``: the commit that it shows, None without a ledger. ``hosts``: all; ``up``, ``disabled``: of
    these, without each other; the rest is down. ``instances``: their number by state, None without an API
    database. ``runs``: the decisions of the last minutes, None if the records cannot be counted.
    ``unknown``: parts that could not be read, each with the reason. ``past``: it is as of an earlier time;
    then ``up`` and ``disabled`` may be None.
    """

    at: float
    version: int | None
    hosts: int
    up: int | None
    disabled: int | None
    instances: Mapping[str, int] | None
    runs: RunSummary | None
    minutes: int
    attention: tuple[Attention, ...]
    classes: tuple[ClassCapacity, ...]
    zones: tuple[PlaceCapacity, ...]
    cells: tuple[PlaceCapacity, ...]
    unknown: Mapping[str, str] = {}
    past: bool = False


async def overview_view(service: DashboardService, req: Request) -> OverviewView:
    """Return the overview as it is now, at most a second old."""
    return await service.kept("overview", 1.0, lambda: _made(service))


async def _made(service: DashboardService) -> OverviewView:
    unknown: dict[str, str] = {}
    cells, runs, found = await asyncio.gather(
        _cells(service, unknown), _runs(service, unknown), _of_cloud(service, unknown)
    )
    found += attention.of_disks(service.files())
    found += attention.of_certificate(service.certificate, service.clock())
    if cells is not None:
        found += attention.of_cells(cells)
    if service.cloud is not None:
        found += attention.of_processes(service.cloud)
    if runs is not None:
        found += attention.of_refusals(runs, MINUTES)
    failed, why = await failures_of_day(service)
    if why is not None and runs is not None:
        unknown["failed builds"] = why
    found += attention.of_builds(failed or [])
    if service.ledger is not None:
        found += attention.of_ledger(service.ledger)
    now = await service.hosts.now()
    known = now.fleet is not None
    return OverviewView(
        at=now.at,
        version=now.version,
        hosts=len(now),
        up=int((now.states == UP).sum()),
        disabled=int((now.states == DISABLED).sum()),
        instances=None if cells is None else _instances(cells),
        runs=runs,
        minutes=MINUTES,
        attention=attention.worst_first(found + attention.of_hosts(now)),
        classes=() if now.fleet is None else _classes(now.fleet),
        zones=places(now, [each.zone for each in now.layout.groups]) if known else (),
        cells=places(now, [each.cell for each in now.layout.groups]) if known else (),
        unknown=unknown,
    )


async def _cells(service: DashboardService, unknown: dict[str, str]) -> list[SeenCell] | None:
    if service.cloud is None:
        return None
    try:
        return await service.cloud.registry.list()
    except StorageError as error:
        unknown["cells"] = str(error)
        return None


async def _runs(service: DashboardService, unknown: dict[str, str]) -> RunSummary | None:
    backend = service.records.backend
    if not isinstance(backend, CountableRecords):
        unknown["decisions"] = "the records are in a file, whose runs are not counted"
        return None
    try:
        return await backend.summary(service.clock() - 60 * MINUTES, MOST_RUNS)
    except RecordsError as error:
        unknown["decisions"] = str(error)
        return None


async def _of_cloud(service: DashboardService, unknown: dict[str, str]) -> list[Attention]:
    """Return the findings that are in the API database."""
    found: list[Attention] = []
    if service.cloud is None:
        return found
    for about, read in (("audit", attention.of_audit), ("maintenances", attention.of_maintenances)):
        try:
            found += await read(service.cloud)
        except StorageError as error:
            unknown[about] = str(error)
    return found


def _classes(fleet: Fleet) -> tuple[ClassCapacity, ...]:
    found = []
    for name in sorted(fleet.inventoried_classes(), key=class_order):
        columns = fleet.inventory_columns(name)
        fleet.meter.spend_rows(columns.n)
        used, reserved, total = (
            int(each[: columns.n].sum(dtype=np.int64))
            for each in (columns.used, columns.reserved, columns.total)
        )
        # An inventory may have a capacity below 0, which takes nothing away from others.
        capacity = int(np.maximum(columns.capacity[: columns.n], 0).sum())
        found.append(ClassCapacity(name, used, capacity, reserved, total, columns.n))
    return tuple(found)


def class_order(name: str) -> tuple[int, bool, str]:
    """Return the key that sorts resource classes: the main ones first, then standard ones."""
    main = MAIN_CLASSES.index(name) if name in MAIN_CLASSES else len(MAIN_CLASSES)
    return main, not is_custom(name), name


def places(now: HostsNow, place_of: Sequence[str]) -> tuple[PlaceCapacity, ...]:
    """Return the capacity of hosts by place. ``place_of``: the place of each group of the layout."""
    names = sorted(set(place_of))
    if not names:
        return ()
    number = {name: place for place, name in enumerate(names)}
    of_group = np.array([number[name] for name in place_of], dtype=np.intp)
    starts = [each.first for each in now.layout.groups]

    def summed(column: npt.NDArray[Any]) -> list[int]:
        """Sum over the hosts of each group, which are neighbours, and then over the groups of each place."""
        groups = np.add.reduceat(column, starts, dtype=np.float64)
        found: list[int] = np.bincount(of_group, groups, len(names)).astype(np.int64).tolist()
        return found

    hosts, up = summed(np.ones(len(now))), summed(now.states == UP)
    amounts: list[dict[str, tuple[int, int]]] = [{} for _ in names]
    for each in sorted(now.classes, key=class_order):
        used, capacity = summed(now.amounts(each).used), summed(now.amounts(each).capacity)
        for place, found in enumerate(amounts):
            if used[place] or capacity[place]:
                found[each] = used[place], capacity[place]
    return tuple(PlaceCapacity(*each) for each in zip(names, hosts, up, amounts, strict=True))


def _instances(cells: list[SeenCell]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in cells:
        for state, number in ({} if each.counts is None else each.counts.instances).items():
            found[state] = found.get(state, 0) + number
    return dict(sorted(found.items()))
