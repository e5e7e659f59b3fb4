"""One look at the traces and the claims of suspects, in the databases of all cells and in placement."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice

from roost.ledger import Held
from roost.nova.audit.unanswered import BESIDE, ClaimSuspect, InstanceTraces, kind_of, unanswered
from roost.nova.database.actions import read_actions
from roost.nova.database.cells import CELL0, NovaCell
from roost.nova.database.evacuations import read_evacuations
from roost.nova.database.migrations import read_unfinished
from roost.nova.database.traces import RowTrace, read_api_traces, read_row_traces
from roost.placement.interface import Placement
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.audit import AuditFinding
from roost.storage import Database, StorageError

AT_ONCE = 500
"""Suspects whose traces and claims are read together."""


class CellsUnread(Exception):
    """Some cells of Nova do not answer. ``reasons``: why, by cell."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{cell}: {reason}" for cell, reason in reasons.items()))
        self.reasons = reasons


class AuditLook:
    """Looks at suspects once. ``cells``: all cells of Nova, cell0 included.

    ``recorded`` returns a suspect with its last recorded claim. Each call may be a search in the records, so
    it is made for evacuations alone that were given up.
    ``requested``: the suspects seen so far whose build request is still there. What becomes of it decides on
    their claims.
    """

    def __init__(
        self,
        api: Database,
        cells: Collection[NovaCell],
        placement: Placement,
        table: NodeTable,
        recorded: Callable[[ClaimSuspect], Awaitable[ClaimSuspect]],
    ) -> None:
        self._api = api
        self._cells = cells
        self._placement = placement
        self._table = table
        self._recorded = recorded
        self._hosts: dict[str, str | None] = {}
        self.requested: list[ClaimSuspect] = []

    async def at(
        self, suspects: Iterable[ClaimSuspect], moved: Collection[str]
    ) -> list[tuple[AuditFinding, Held]]:
        """Return the claims of suspects that nobody answered for, each with what its instance holds.

        ``moved``: the instances of cells that may hold more than their rows say; no other instance that is
        in a cell is suspected.

        Raises:
            CellsUnread: a cell does not answer, so nothing is certain.
            StorageError: Nova's API database does not answer.
            RecordsError: the records cannot be read.
            PlacementError: and whatever else placement raises.
        """
        found: list[tuple[AuditFinding, Held]] = []
        for some in _slices(suspects):
            traces = await self._traces([each.instance for each in some], moved)
            self.requested += [each for each in some if traces[each.instance].requested]
            suspected = [each for each in some if kind_of(traces[each.instance]) is not None]
            held = await self._placement.holdings([each.instance for each in suspected])
            for suspect in suspected:
                if suspect.instance not in held:
                    continue
                holds, of = held[suspect.instance], traces[suspect.instance]
                hosts: Mapping[str, str | None] = {}
                claim = suspect
                if kind_of(of) == BESIDE:
                    hosts = await self._hosts_of(holds)
                    claim = await self._recorded(suspect)
                finding = unanswered(claim, of, holds, hosts)
                if finding is not None:
                    found.append((finding, holds))
        return found

    async def _traces(self, instances: Collection[str], moved: Collection[str]) -> dict[str, InstanceTraces]:
        requested, mapped = await self._api.read(read_api_traces(instances))
        lost = [
            each
            for each in instances
            if each not in requested and (mapped.get(each, CELL0) == CELL0 or each in moved)
        ]
        found = {
            name: InstanceTraces(requested=name in requested, mapped=mapped.get(name)) for name in instances
        }
        rows: dict[str, dict[str, RowTrace]] = {name: {} for name in lost}
        more: dict[str, InstanceTraces] = {}
        unread: dict[str, str] = {}

        async def read(cell: NovaCell) -> None:
            try:
                for row in (await cell.database.read(read_row_traces(lost))).values():
                    rows[row.uuid][cell.uuid] = row
                here = [name for name in lost if name in moved and cell.uuid in rows[name]]
                more.update(await _moves(cell, here))
            except StorageError as error:
                unread[cell.name] = str(error)

        if lost:
            await asyncio.gather(*map(read, self._cells))
        if unread:
            raise CellsUnread(unread)
        for name in lost:
            moves = more.get(name, InstanceTraces())
            found[name] = InstanceTraces(
                requested=False,
                mapped=mapped.get(name),
                rows=rows[name],
                migrations=moves.migrations,
                evacuations=moves.evacuations,
                actions=moves.actions,
            )
        return found

    async def _hosts_of(self, held: Held) -> dict[str, str | None]:
        """Return the host of each provider that is held of; None for one that is in no host's tree."""
        for provider in held.allocations.keys() - self._hosts.keys():
            known = await self._placement.provider(provider)
            index = None if known is None else self._table.index_of_node(known.root)
            self._hosts[provider] = None if index is None else self._table.hosts[index]
        return {provider: self._hosts[provider] for provider in held.allocations}


async def _moves(cell: NovaCell, instances: Collection[str]) -> dict[str, InstanceTraces]:
    """Return the moves of instances in a cell. The migrations are read before the actions: Nova records the
    action first."""
    if not instances:
        return {}
    evacuations = await cell.database.read(read_evacuations(instances))
    unfinished = await cell.database.read(read_unfinished(instances))
    actions = await cell.database.read(read_actions(instances))
    return {
        name: InstanceTraces(
            migrations=[each for each in unfinished if each.instance == name],
            evacuations=[each for each in evacuations if each.instance == name],
            actions=actions.get(name, ()),
        )
        for name in instances
    }


def _slices(suspects: Iterable[ClaimSuspect]) -> Iterator[list[ClaimSuspect]]:
    left = iter(suspects)
    while some := list(islice(left, AT_ONCE)):
        yield some
