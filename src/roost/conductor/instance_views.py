"""Instances as users see them: found by their mappings, shown as their cells have them.

A cell that is down, or does not answer in time, hides its own instances only: they are shown as unknown, with
what the mapping says.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

import msgspec
import structlog

from roost.cells import Cell
from roost.conductor.instance_types import InstancePage, InstancesQuery, ShownInstance
from roost.conductor.mappings import InstanceMapping
from roost.conductor.requests import Requests
from roost.model.instance import DELETING, BuildRequest, Instance
from roost.storage import StorageError

SCHEDULING = "scheduling"
"""State of an instance that is accepted and not in a cell yet."""

UNKNOWN = "unknown"
"""State of an instance whose cell cannot be asked."""

CELL_SECONDS = 3.0
"""Seconds that a cell has to answer; then its instances are shown as unknown."""

T = TypeVar("T")

_log = structlog.get_logger()


class InstanceViews:
    """Finds instances. Raises `StorageError` if the API database cannot be used."""

    def __init__(self, requests: Requests, cells: Mapping[str, Cell]) -> None:
        self._requests = requests
        self._cells = cells

    async def find(self, uuid: str) -> ShownInstance | None:
        """An instance with the reasons of its failed attempts; None if it is unknown or gone."""
        mapping = await self._requests.mapping(uuid)
        if mapping is None:
            return None
        found = await self._shown([mapping])
        if not found:
            return None
        shown = found[0]
        if shown.cell is None or shown.state == UNKNOWN:
            return shown
        faults = await self._asked(shown.cell, self._cells[shown.cell].faults_of(uuid))
        if faults is None:
            return _unknown(mapping, f"cell {shown.cell} cannot be asked")
        return msgspec.structs.replace(shown, faults=faults)

    async def page(self, query: InstancesQuery, project_id: str | None) -> InstancePage:
        """Instances by page, of a project or of all."""
        found = await self._requests.page(query.limit + 1, query.marker or "", query.request_id, project_id)
        listed = found[: query.limit]
        following = listed[-1].instance_uuid if len(found) > query.limit else None
        return InstancePage(await self._shown(listed), following)

    async def _shown(self, mappings: Sequence[InstanceMapping]) -> list[ShownInstance]:
        """Instances in the order of their mappings, without those that are gone."""
        by_cell: defaultdict[str, list[str]] = defaultdict(list)
        for mapping in mappings:
            if mapping.cell is not None:
                by_cell[mapping.cell].append(mapping.instance_uuid)
        answers = await asyncio.gather(*(self._in_cell(cell, uuids) for cell, uuids in by_cell.items()))
        cells = dict(zip(by_cell, answers, strict=True))
        elsewhere = [
            mapping
            for mapping in mappings
            if mapping.cell is None
            or ((there := cells[mapping.cell]) is not None and mapping.instance_uuid not in there)
        ]
        waiting = await self._requests.waiting_among({each.request_id for each in elsewhere})
        again = await self._moved(elsewhere, waiting)
        shown = []
        for mapping in mappings:
            there = None if mapping.cell is None else cells[mapping.cell]
            if mapping.cell is not None and there is None:
                shown.append(_unknown(mapping, f"cell {mapping.cell} cannot be asked"))
            elif there is not None and mapping.instance_uuid in there:
                shown.append(_of_cell(there[mapping.instance_uuid], mapping.cell))
            elif mapping.instance_uuid in again:
                shown.append(again[mapping.instance_uuid])
            elif mapping.request_id in waiting:
                shown.append(_on_its_way(waiting[mapping.request_id], mapping))
        return shown

    async def _moved(
        self, missing: Sequence[InstanceMapping], waiting: Mapping[str, BuildRequest]
    ) -> dict[str, ShownInstance]:
        """Instances that were on their way at one look, and whose request is finished at the next one.

        They have reached a cell in between, or they are gone.
        """
        late = [each.instance_uuid for each in missing if each.request_id not in waiting and not each.deleted]
        if not late:
            return {}
        found: dict[str, ShownInstance] = {}
        for uuid, mapping in (await self._requests.mappings(late)).items():
            if mapping.cell is None:
                continue
            there = await self._in_cell(mapping.cell, [uuid])
            if there is None:
                found[uuid] = _unknown(mapping, f"cell {mapping.cell} cannot be asked")
            elif uuid in there:
                found[uuid] = _of_cell(there[uuid], mapping.cell)
            elif not mapping.deleted:
                found[uuid] = _unknown(mapping, f"cell {mapping.cell} does not have it")
        return found

    async def _in_cell(self, name: str, uuids: Sequence[str]) -> Mapping[str, Instance] | None:
        """Those of the instances that a cell has; None if it cannot be asked."""
        cell = self._cells.get(name)
        return None if cell is None else await self._asked(name, cell.find(uuids))

    async def _asked(self, cell: str, answer: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(CELL_SECONDS):
                return await answer
        except (StorageError, TimeoutError) as error:
            _log.warning("a cell cannot be asked", cell=cell, error=str(error))
            return None


def _of_cell(instance: Instance, cell: str | None) -> ShownInstance:
    return ShownInstance(
        uuid=instance.uuid,
        request_id=instance.request_id,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=instance.flavor,
        state=instance.state,
        cell=cell,
        host=instance.host,
        attempt=instance.attempt,
        reason=instance.reason,
        faults=[],
    )


def _on_its_way(request: BuildRequest, mapping: InstanceMapping) -> ShownInstance:
    return ShownInstance(
        uuid=mapping.instance_uuid,
        request_id=request.request_id,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        flavor=request.spec.flavor.name,
        state=DELETING if mapping.deleted else SCHEDULING,
        cell=None,
        host=None,
        attempt=0,
        reason=None,
        faults=[],
    )


def _unknown(mapping: InstanceMapping, reason: str) -> ShownInstance:
    return ShownInstance(
        uuid=mapping.instance_uuid,
        request_id=mapping.request_id,
        project_id=mapping.project_id,
        user_id=mapping.user_id,
        flavor=None,
        state=UNKNOWN,
        cell=mapping.cell,
        host=None,
        attempt=0,
        reason=reason,
        faults=[],
    )
