"""Maintenances as they are shown, and their hosts with the instances that are left on them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from roost.conductor.maintenance.types import (
    MaintainedHostPage,
    MaintainedHostsQuery,
    MaintenancePage,
    MaintenancesQuery,
    ShownHook,
    ShownMaintainedHost,
    ShownMaintenance,
)
from roost.model.maintenance import (
    LEAVING,
    LEFT_OUT,
    RETURNED,
    WAITING,
    HookResult,
    MaintainedHost,
    Maintenance,
)
from roost.model.operator_word import Subject
from roost.state.api_database.maintenance_rows import (
    count_hosts,
    find_maintenance,
    list_hosts,
    list_maintenances,
    maintenances_of_host,
)
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database import Cell
from roost.state.cell_database.instance_search import count_remaining
from roost.storage import Database
from roost.web.errors import NotFound


class MaintenanceViews:
    """Reads maintenances. Raises `StorageError` of the API database."""

    def __init__(self, api: Database, cells: Mapping[str, Cell]) -> None:
        self._api = api
        self._cells = cells

    def begun(self, maintenance: Maintenance, hosts: int) -> ShownMaintenance:
        """Return a maintenance of so many hosts as it is shown at its begin."""
        return _shown(maintenance, {WAITING: hosts})

    async def show(self, uuid: str) -> ShownMaintenance:
        """Return a maintenance. Raises `NotFound`."""
        found = await self._api.read(find_maintenance(uuid))
        if found is None:
            raise NotFound(f"no maintenance {uuid}")
        return _shown(found, await self._api.read(count_hosts(uuid)))

    async def page(self, query: MaintenancesQuery) -> MaintenancePage:
        """Return a page of maintenances. Raises `BadRequest`."""
        if query.host is not None:
            uuids = await self._api.read(maintenances_of_host(query.host))
            return MaintenancePage([await self.show(uuid) for uuid in uuids], None)
        found = await self._api.read(list_maintenances(query.limit + 1, query.after, query.under_way))
        page = found[: query.limit]
        numbers = [await self._api.read(count_hosts(each.uuid)) for each in page]
        shown = [_shown(*each) for each in zip(page, numbers, strict=True)]
        return MaintenancePage(shown, marker_of(page[-1]) if len(found) > query.limit else None)

    async def hosts(self, uuid: str, query: MaintainedHostsQuery) -> MaintainedHostPage:
        """Return a page of the hosts of a maintenance. Raises `NotFound`, `BadRequest`."""
        states = query.states
        if await self._api.read(find_maintenance(uuid)) is None:
            raise NotFound(f"no maintenance {uuid}")
        found = await self._api.read(list_hosts(uuid, query.limit + 1, query.marker or "", states))
        page = found[: query.limit]
        left = await self._left(page)
        shown = [_shown_host(each, left.get(each.host)) for each in page]
        return MaintainedHostPage(shown, page[-1].host if len(found) > query.limit else None)

    async def _left(self, hosts: Sequence[MaintainedHost]) -> dict[str, int]:
        """Return the numbers of instances on the hosts that are being emptied, as far as cells answer."""
        by_cell = defaultdict[str, list[Subject]](list)
        for each in hosts:
            if each.state in LEAVING:
                by_cell[each.cell].append(Subject(each.cell, each.host))
        answers = await asyncio.gather(
            *(ask_cell(self._cells.get(cell), count_remaining(tuple(of))) for cell, of in by_cell.items())
        )
        return {
            subject.host: answer.instances.get(subject, 0)
            for subjects, answer in zip(by_cell.values(), answers, strict=True)
            if answer is not None
            for subject in subjects
        }


def marker_of(maintenance: Maintenance) -> str:
    """Return the marker of the page that begins after a maintenance."""
    return f"{maintenance.began!r}_{maintenance.uuid}"


def _shown(maintenance: Maintenance, hosts: Mapping[str, int]) -> ShownMaintenance:
    over = hosts.get(RETURNED, 0) + hosts.get(LEFT_OUT, 0)
    return ShownMaintenance(
        uuid=maintenance.uuid,
        state=maintenance.state,
        wave=maintenance.wave,
        hosts=dict(sorted(hosts.items())),
        left=sum(hosts.values()) - over,
        reason=maintenance.reason,
        reserve=maintenance.reserve,
        most_hosts=maintenance.most_hosts,
        keep_going=maintenance.keeps_going,
        began=maintenance.began,
        changed_at=maintenance.changed_at,
        user_id=maintenance.by.user_id,
    )


def _shown_host(host: MaintainedHost, left: int | None) -> ShownMaintainedHost:
    return ShownMaintainedHost(
        host=host.host,
        cell=host.cell,
        state=host.state,
        wave=host.wave,
        instances=left,
        calls=host.calls,
        failures=host.failures,
        hook=None if host.result is None else _shown_hook(host.result),
        reason=host.reason,
        changed_at=host.changed_at,
    )


def _shown_hook(result: HookResult) -> ShownHook:
    return ShownHook(result.failure, result.status, result.output)
