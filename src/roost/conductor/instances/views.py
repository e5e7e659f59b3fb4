"""Instances as users see them: found by their mappings, shown as their cells have them.

A cell that is down, or does not answer in time, hides its own instances only: they are shown as unknown, with
what the mapping says.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from roost.conductor.instances.types import (
    SCHEDULING,
    UNKNOWN,
    AcceptedInstances,
    InstancePage,
    InstancesQuery,
    ShownInstance,
)
from roost.model.instance import (
    ABANDONED,
    DELETING,
    ERROR,
    FAILED,
    LOST,
    SHELVED,
    BuildRequest,
    Instance,
)
from roost.model.visibility import BUILD_FAILED, NO_VALID_HOST, seen, seen_by_project, shown_whole
from roost.placement.errors import NotFound
from roost.placement.interface import Placement
from roost.state.api_database.consumers import find_consumers
from roost.state.api_database.mappings import InstanceMapping, page_of_mappings
from roost.state.api_database.open_cells import ask_cell
from roost.state.api_database.request_reads import Requests
from roost.state.cell_database import Cell
from roost.state.cell_database.hosts import nodes_of_host
from roost.state.cell_database.instance_search import DescribedInstance, describe_instances, search_instances

NODES_AT_ONCE = 32
"""Nodes of a host whose claims are asked for at the same time."""

_OF_MAPPINGS = (None, SCHEDULING, UNKNOWN)
"""States of instances that only mappings know, so that mappings are read for them; None: any state."""

GUEST_GONE = "The guest of the instance is gone."
"""The reason of an instance that an operator has ended, as its project sees it."""

GUEST_MISSING = "The guest of the instance is missing."
"""The reason of an instance that is lost, as its project sees it."""

NOT_UNSHELVED = "The instance could not be unshelved: no host takes it now."
"""The reason of an instance that stays shelved, as its project sees it."""

NOT_KNOWN_NOW = "The instance cannot be looked up now."
"""The reason of an instance whose cell cannot be asked, as its project sees it."""


class InstanceViews:
    """Finds instances. Raises `StorageError` if the API database cannot be used.

    The instances of a host are those that its cell has there, and those that hold a claim there and have not
    reached the cell yet: a disabled host is empty when there are none of both. A search by host raises what
    placement raises.
    """

    def __init__(self, requests: Requests, cells: Mapping[str, Cell], placement: Placement) -> None:
        self._requests = requests
        self._placement = placement
        self._cells = cells

    async def find(self, uuid: str) -> ShownInstance | None:
        """Return an instance; None if it is unknown or gone."""
        mapping = await self._requests.mapping(uuid)
        found = [] if mapping is None else await self._shown([mapping], set())
        return found[0] if found else None

    async def page(self, query: InstancesQuery, project_id: str | None) -> InstancePage:
        """Return a page of instances, of a project or of all."""
        silent: set[str] = set()
        of_cells = (
            query.host is not None or query.changed_since is not None or query.state not in _OF_MAPPINGS
        )
        named = query.name is not None or query.uuid_prefix is not None
        if of_cells and not named:
            found = await self._searched(query, project_id, silent)
        else:
            cells: tuple[str, ...] | None = None if query.cell is None else (query.cell,)
            if query.state == UNKNOWN:
                cells = await self._silent(cells)
            found = await self._requests.page(
                page_of_mappings(
                    most=query.limit + 1,
                    after=query.marker or "",
                    request_ids=query.request_ids,
                    project_id=project_id,
                    cells=cells,
                    unplaced=query.state == SCHEDULING,
                    name=query.name,
                    prefix=None if query.uuid_prefix is None else query.uuid_prefix.lower(),
                )
            )
        listed = found[: query.limit]
        following = listed[-1].instance_uuid if len(found) > query.limit else None
        shown = await self._shown(listed, silent)
        if query.host is not None:
            shown = [each for each in shown if each.host in (None, query.host)]
        if query.state is not None:
            # Some have changed since they were found.
            shown = [each for each in shown if each.state == query.state]
        if named and query.host is not None:
            shown = [each for each in shown if each.host == query.host]
        if named and (since := query.changed_since) is not None:
            shown = [each for each in shown if each.changed_at is not None and each.changed_at >= since]
        return InstancePage(shown, following, sorted(silent))

    async def _searched(
        self, query: InstancesQuery, project_id: str | None, silent: set[str]
    ) -> list[InstanceMapping]:
        """The mappings of instances that cells find. Adds those that cannot be asked to ``silent``."""
        search = search_instances(
            most=query.limit + 1,
            after=query.marker or "",
            request_ids=query.request_ids,
            project_id=project_id,
            state=query.state,
            host=query.host,
            changed_since=query.changed_since,
        )
        names = list(self._cells) if query.cell is None else [query.cell]
        answers = await asyncio.gather(*(ask_cell(self._cells.get(name), search) for name in names))
        silent.update(name for name, answer in zip(names, answers, strict=True) if answer is None)
        found = {uuid for answer in answers for uuid in answer or ()}
        on_their_way = set[str]()
        if query.host is not None and query.changed_since is None and query.state in (None, SCHEDULING):
            claimed = await self._claimed_on(query.host, names, silent) - found
            missing = await self._requests.mappings(sorted(claimed))
            on_their_way = {
                each.instance_uuid for each in missing.values() if _is_asked(each, query, project_id)
            }
        uuids = sorted(found | on_their_way)[: query.limit + 1]
        mappings = await self._requests.mappings(uuids)
        return [mappings[uuid] for uuid in uuids if uuid in mappings]

    async def _claimed_on(self, host: str, names: Sequence[str], silent: set[str]) -> set[str]:
        """The consumers with claims on the nodes of a host. Adds cells that cannot be asked to ``silent``."""
        answers = await asyncio.gather(
            *(ask_cell(self._cells.get(name), nodes_of_host(host)) for name in names)
        )
        silent.update(name for name, answer in zip(names, answers, strict=True) if answer is None)
        roots = [node.node for answer in answers for node in answer or ()]
        claimed = set[str]()
        for first in range(0, len(roots), NODES_AT_ONCE):
            some = roots[first : first + NODES_AT_ONCE]
            claimed.update(*await asyncio.gather(*map(self._claimed_in, some)))
        return claimed

    async def _claimed_in(self, root: str) -> set[str]:
        """The instances with claims on the providers of a tree."""
        claimed = set[str]()
        for provider in await self._placement.tree(root):
            with suppress(NotFound):
                claimed |= await self._placement.consumers_on(provider.uuid)
        drawn = await self._requests.database.read(find_consumers(tuple(claimed)))
        return {drawn.get(each, each) for each in claimed}

    async def _silent(self, only: Sequence[str] | None) -> tuple[str, ...]:
        """The cells that cannot be asked now."""
        names = list(self._cells) if only is None else list(only)
        answers = await asyncio.gather(
            *(ask_cell(self._cells.get(name), search_instances(most=1)) for name in names)
        )
        return tuple(name for name, answer in zip(names, answers, strict=True) if answer is None)

    async def _shown(self, mappings: Sequence[InstanceMapping], silent: set[str]) -> list[ShownInstance]:
        """Instances in the order of their mappings, without those that are gone.

        Adds cells that cannot be asked to ``silent``.
        """
        by_cell: defaultdict[str, list[str]] = defaultdict(list)
        for mapping in mappings:
            if mapping.cell is not None:
                by_cell[mapping.cell].append(mapping.instance_uuid)
        answers = await asyncio.gather(*(self._in_cell(cell, uuids) for cell, uuids in by_cell.items()))
        cells = dict(zip(by_cell, answers, strict=True))
        silent.update(name for name, answer in cells.items() if answer is None)
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
        names = {mapping.instance_uuid: mapping.name for mapping in mappings if mapping.name is not None}
        return [
            msgspec.structs.replace(each, name=names[each.uuid]) if each.uuid in names else each
            for each in shown
        ]

    async def _moved(
        self, missing: Sequence[InstanceMapping], waiting: Mapping[str, BuildRequest]
    ) -> dict[str, ShownInstance]:
        """Return instances whose requests were finished between two reads.

        The instances have reached a cell in between, or they are gone.
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

    async def _in_cell(self, name: str, uuids: Sequence[str]) -> Mapping[str, DescribedInstance] | None:
        """Return the instances that a cell has, of the named ones; None if it cannot be asked."""
        return await ask_cell(self._cells.get(name), describe_instances(tuple(uuids)))


def _is_asked(mapping: InstanceMapping, query: InstancesQuery, project_id: str | None) -> bool:
    """Return whether a query asks for an instance that no cell has found."""
    return (
        mapping.instance_uuid > (query.marker or "")
        and project_id in (None, mapping.project_id)
        and (not query.request_ids or mapping.request_id in query.request_ids)
    )


def _of_cell(described: DescribedInstance, cell: str | None) -> ShownInstance:
    instance = described.instance
    claimed = instance.selection
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
        node=instance.node,
        run=instance.run or None,
        claim=None if claimed is None else dict(claimed.allocations),
        attempts=described.attempts,
        changed_at=described.changed_at,
        availability_zone=_zone_of(instance),
        move=instance.move,
    )


def _zone_of(instance: Instance) -> str | None:
    if instance.selection is not None and instance.selection.zone is not None:
        return instance.selection.zone
    return None if instance.spec is None else instance.spec.availability_zone


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
        availability_zone=request.spec.availability_zone,
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
    )


shown_whole(AcceptedInstances)


@seen_by_project(ShownInstance)
def _instance(shown: ShownInstance) -> ShownInstance:
    """Show the request, the state, and the reason of the state in words that name no host."""
    return ShownInstance(
        uuid=shown.uuid,
        request_id=shown.request_id,
        project_id=shown.project_id,
        user_id=shown.user_id,
        flavor=shown.flavor,
        state=shown.state,
        cell=None,
        host=None,
        attempt=shown.attempt,
        reason=_reason(shown),
        run=shown.run,
        changed_at=shown.changed_at,
        name=shown.name,
        availability_zone=shown.availability_zone,
    )


def _reason(shown: ShownInstance) -> str | None:
    if shown.state == UNKNOWN:
        return NOT_KNOWN_NOW
    if shown.state == LOST:
        return GUEST_MISSING
    if shown.state == SHELVED:
        return None if shown.reason is None else NOT_UNSHELVED
    if shown.state not in (FAILED, ABANDONED, ERROR):
        return None
    if shown.host is None:
        return NO_VALID_HOST
    # Of an attempt that failed the end is noted; a guest that an operator gives up has run.
    failed = any(each.attempt == shown.attempt for each in shown.attempts)
    return BUILD_FAILED if failed else GUEST_GONE


@seen_by_project(InstancePage)
def _page(page: InstancePage) -> InstancePage:
    return InstancePage([seen(each) for each in page.instances], page.next, [])
