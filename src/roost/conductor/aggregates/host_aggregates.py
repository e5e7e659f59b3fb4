"""Changes of host aggregates, with the rules that need the cells: names of nodes, and instances on them."""

import asyncio
import uuid as uuids
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from roost.conductor.aggregates.provider_aggregates import MirrorPlacement, bring
from roost.conductor.hosts.names import NodeOwners
from roost.conductor.words.words import Words
from roost.model.aggregate import Aggregate
from roost.model.instance import Requester
from roost.state.api_database.aggregates.errors import AggregateChanged, UnknownNodeName, ZoneInUse
from roost.state.api_database.aggregates.store import AggregateStore, Answer, Judge
from roost.state.api_database.aggregates.zones import ZoneChange
from roost.state.api_database.open_cells import ask_for_all, ask_until
from roost.state.cell_database import Cell
from roost.state.cell_database.nodes import NodeName, count_instances, names_of, nodes_called
from roost.storage import StorageError

T = TypeVar("T")


class KnownNodes(NamedTuple):
    """The root providers of nodes. ``away``: the cells whose nodes cannot be read now."""

    uuids: frozenset[str]
    away: tuple[str, ...]


class HostAggregates:
    """The host aggregates of a cloud and the nodes of its cells. ``by``: the requester of a change.

    A node may be in several aggregates but in one availability zone only, and keeps its zone while it has
    instances. An instance that is on its way to a node at the moment of the change is not seen: as in Nova,
    the zone of a node should be changed while it takes no instances.

    A change takes effect when its method returns: the members are in placement, and ``words`` has announced
    it. A change whose method raises an error of placement is stored; it takes effect within seconds or when
    it is repeated. ``changed`` is set after each change. Raises `StorageError` if a database cannot be used.
    A cell that does not answer holds up no change of nodes of other cells, and of its own nodes only a change
    of their zone: it alone knows whether they have instances.
    """

    def __init__(
        self, store: AggregateStore, cells: Iterable[Cell], placement: MirrorPlacement, words: Words
    ) -> None:
        self.store = store
        self.words = words
        self._placement = placement
        self._owners = NodeOwners(store.database, placement)
        self.changed = asyncio.Event()
        self._cells = cells

    async def create(
        self,
        name: str,
        metadata: Mapping[str, str],
        answer: Answer | None = None,
        by: Requester | None = None,
    ) -> Aggregate:
        """Make an aggregate without members. ``answer``: returns the answer that is stored with it.

        Raises `NameTaken`, `KeyInWork`.
        """
        new = Aggregate(uuid=str(uuids.uuid4()), name=name, metadata=dict(metadata))
        [made] = await self.add([new], answer, by)
        return made

    async def add(
        self, new: Iterable[Aggregate], answer: Answer | None = None, by: Requester | None = None
    ) -> list[Aggregate]:
        """Add complete aggregates, all or none. Raises `NameTaken`, `SeveralZones`, `ZoneInUse`."""
        wanted = list(new)
        added = await self._judged(lambda judge: self.store.create(wanted, judge, answer, by))
        for each in added:
            await bring(self.store, self._placement, each.uuid, each.members)
        await self.words.announce()
        return added

    async def replace(
        self,
        uuid: str,
        name: str,
        metadata: Mapping[str, str],
        generation: int,
        by: Requester | None = None,
    ) -> Aggregate:
        """Replace name and metadata of an aggregate that is at a generation.

        Raises:
            NoSuchAggregate: there is no such aggregate.
            AggregateChanged: it is at another generation.
            NameTaken: another aggregate has the name.
            SeveralZones: a member is in another zone.
            ZoneInUse: a member has instances, and its zone would change.
        """

        def replaced(old: Aggregate) -> Aggregate:
            if old.generation != generation:
                raise AggregateChanged(
                    f"aggregate {uuid} is at generation {old.generation}, not {generation}: read it again"
                )
            return msgspec.structs.replace(old, name=name, metadata=dict(metadata))

        found = await self._judged(partial(self.store.change, uuid, replaced, by=by))
        await self.words.announce()
        return found

    async def change_members(
        self, uuid: str, add: Collection[str], remove: Collection[str], by: Requester | None = None
    ) -> Aggregate:
        """Add nodes to an aggregate and remove nodes from it, all or none. Nodes are named by uuid or name.

        A node that is a member already is not added again, and one that is none is not removed.

        Raises:
            NoSuchAggregate: there is no such aggregate.
            UnknownNodeName: a name is that of no node or of several, or is to be added and removed.
            SeveralZones: a node would be in two zones.
            ZoneInUse: a node has instances, and its zone would change.
        """
        members = (await self.store.find(uuid)).members
        joining = set((await self._resolved(add)).values())
        # A member whose node is gone is known by its uuid only.
        leaving = {name for name in remove if name in members}
        leaving |= set((await self._resolved([name for name in remove if name not in leaving])).values())
        if both := joining & leaving:
            raise UnknownNodeName(f"node {min(both)} cannot be added and removed at once")

        def changed(old: Aggregate) -> Aggregate:
            return msgspec.structs.replace(old, members=(old.members | joining) - leaving)

        found = await self._judged(partial(self.store.change, uuid, changed, by=by))
        await bring(self.store, self._placement, uuid, joining | leaving)
        await self.words.announce()
        return found

    async def delete(self, uuid: str, by: Requester | None = None) -> None:
        """Delete an aggregate without members. Raises `NoSuchAggregate`, `AggregateNotEmpty`."""
        await self.store.delete(uuid, by)
        self.changed.set()
        await self.words.announce()

    async def names(self, nodes: Collection[str]) -> dict[str, NodeName]:
        """Return by uuid the names of the nodes that are in a cell that answers."""
        if not nodes:
            return {}
        wanted = frozenset(nodes)

        def complete(found: Sequence[list[NodeName]]) -> bool:
            # A node is in one cell.
            return wanted <= {each.node for answer in found for each in answer}

        found = await ask_until(self._cells, names_of(nodes), complete)
        return {each.node: each for answer in found for each in answer}

    async def nodes(self) -> KnownNodes:
        """Return the root providers of all nodes of the cells whose databases answer."""
        cells = list(self._cells)
        found = await asyncio.gather(*(cell.node_uuids() for cell in cells), return_exceptions=True)
        uuids, away = set[str](), list[str]()
        for cell, nodes in zip(cells, found, strict=True):
            if isinstance(nodes, frozenset):
                uuids |= nodes
            elif isinstance(nodes, StorageError):
                away.append(cell.name)
            else:
                raise nodes
        return KnownNodes(frozenset(uuids), tuple(away))

    async def _resolved(self, names: Collection[str]) -> dict[str, str]:
        """Return the uuid of the node of each name: a name is its uuid, else its own name, else its host's.

        Raises:
            UnknownNodeName: no node has the name, or several have it.
        """
        if not names:
            return {}

        def all_called(found: Sequence[list[NodeName]]) -> bool:
            # A name belongs to one host in all cells: no cell that is away has another node of this name.
            called = {name for answer in found for node in answer for name in node}
            return called.issuperset(names)

        def all_by_uuid(found: Sequence[list[NodeName]]) -> bool:
            return {each.node for answer in found for each in answer}.issuperset(names)

        cells = list(self._cells)
        found = await ask_until(cells, nodes_called(names), all_by_uuid)
        if len(found) < len(cells) and not all_called(found):
            called = {name for answer in found for node in answer for name in node}
            found.append(await self._owners.called(set(names) - called))
            if not all_called(found):
                found = await ask_for_all(cells, nodes_called(names), all_called)
        by_name: defaultdict[str, tuple[set[str], set[str], set[str]]]
        by_name = defaultdict(lambda: (set(), set(), set()))
        for answer in found:
            for node in answer:
                for name, rank in ((node.node, 0), (node.nodename, 1), (node.host, 2)):
                    by_name[name][rank].add(node.node)
        resolved = {}
        for name in names:
            candidates = next(filter(None, by_name[name]), set())
            if not candidates:
                raise UnknownNodeName(f"no compute node {name!r}")
            if len(candidates) > 1:
                raise UnknownNodeName(
                    f"{len(candidates)} compute nodes are called {name!r}: name them by uuid"
                )
            resolved[name] = min(candidates)
        return resolved

    async def _judged(self, write: Callable[[Judge], Awaitable[T]]) -> T:
        """Write a change once the nodes whose zone it changes are known to have no instances.

        The write finds these nodes, but the cells' databases know the instances. So a write that finds a node
        whose instances were not counted is rolled back, and runs again after the count.
        """
        empty: set[str] = set()

        def judge(changes: Mapping[str, ZoneChange]) -> None:
            if not changes.keys() <= empty:
                raise _NotLookedAt(changes)

        while True:
            try:
                written = await write(judge)
            except _NotLookedAt as found:
                await self._check_empty(found.changes)
                empty |= found.changes.keys()
            else:
                self.changed.set()
                return written

    async def _check_empty(self, changes: Mapping[str, ZoneChange]) -> None:
        def all_found(found: Sequence[dict[str, int]]) -> bool:
            # A node is in one cell.
            return changes.keys() <= {node for counts in found for node in counts}

        for counts in await ask_for_all(self._cells, count_instances(changes), all_found, all_found):
            for node, count in sorted(counts.items()):
                if count:
                    raise ZoneInUse(
                        f"the availability zone of node {node} would change {changes[node]}, "
                        f"and it has {count} instances"
                    )


class _NotLookedAt(Exception):
    """A change of zones of nodes whose instances were not counted before the write."""

    def __init__(self, changes: Mapping[str, ZoneChange]) -> None:
        super().__init__(f"{len(changes)} nodes change their zone")
        self.changes = changes
