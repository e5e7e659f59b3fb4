"""The host aggregates of Nova in the node table: members are hosts there, and nodes here."""

from collections import defaultdict
from collections.abc import Callable, Collection

from roost.model.aggregate import Aggregate
from roost.model.node_event import AggregateEvent
from roost.nova.database.aggregates import AggregateRow, Mark, read_aggregates, read_mark
from roost.scheduler.nodes.table import NodeTable
from roost.storage import Database

SAME_SECOND = 3.0
"""Seconds after a change in which the mark is not relied on: two changes in one second leave the same one."""

ANYWAY_SECONDS = 60.0
"""Seconds after which the aggregates are read whatever their mark is."""


class NovaAggregates:
    """Keeps the aggregates of a node table as they are in Nova's API database.

    A host's nodes are told to it before they are in the table, so that no node is ever seen without its
    aggregates, of which one may be another tenant's.

    ``known``: the aggregates were read. ``again``: they are read at the next look whatever their mark is.
    """

    def __init__(self, api: Database, table: NodeTable, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._table = table
        self._monotonic = monotonic
        self._rows: list[AggregateRow] = []
        self._mark: Mark | None = None
        self._marked = self._read = 0.0
        self._nodes: defaultdict[str, set[str]] = defaultdict(set)
        self._host: dict[str, str] = {}
        self.known = False
        self.again = False

    async def read(self) -> list[AggregateEvent]:
        """Take in changed aggregates. Returns the events of changes. Raises `StorageError`."""
        began = self._monotonic()
        mark = await self._api.read(read_mark())
        if mark != self._mark:
            self._marked = began
        elif self._relies_on_mark(began):
            return []
        self.again = False
        rows = await self._api.read(read_aggregates())
        self._rows, self._mark, self._read = rows, mark, began
        self.known = True
        return self._apply(rows)

    def _relies_on_mark(self, now: float) -> bool:
        # SQLite gives the id of a removed row to a new one.
        settled = now - self._marked > SAME_SECOND and now - self._read < ANYWAY_SECONDS
        return settled and not self.again and not self._api.is_sqlite

    def place(self, node: str, host: str) -> bool:
        """Note the host of a node. Returns whether the node was not on it; `apply` then must be called."""
        before = self._host.get(node)
        if before == host:
            return False
        if before is not None:
            self._nodes[before].discard(node)
        self._host[node] = host
        self._nodes[host].add(node)
        return True

    def nodes_of(self, host: str) -> Collection[str]:
        """Return the nodes of a host."""
        return self._nodes.get(host, ())

    def forget(self, node: str) -> None:
        """Note that a node is gone. It stays a member in the table until `apply` is called."""
        host = self._host.pop(node, None)
        if host is not None:
            self._nodes[host].discard(node)
            if not self._nodes[host]:
                del self._nodes[host]

    def apply(self) -> None:
        """Bring the members in the table up to date with the hosts of nodes."""
        self._apply(self._rows)

    def _apply(self, rows: list[AggregateRow]) -> list[AggregateEvent]:
        changed = [
            Aggregate(
                uuid=row.uuid,
                name=row.name,
                metadata=row.metadata,
                members=frozenset[str]().union(*(self._nodes.get(host, ()) for host in row.hosts)),
            )
            for row in rows
        ]
        return self._table.set_aggregates(changed, {row.uuid for row in rows})
