"""Indexes of the node table: by root provider, by names, and by the rows of a fleet."""

import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.node import NodeReport
from roost.scheduler.nodes.labels import Indexes


class FewHolders:
    """The nodes that hold a thing which few nodes hold, such as an instance or a name.

    Nodes are found by the name of the thing, in the order in which they reported it.
    """

    def __init__(self) -> None:
        self._holders: dict[str, tuple[int, ...]] = {}

    def of(self, name: str) -> tuple[int, ...]:
        """Return the indexes of the nodes that have it."""
        return self._holders.get(name, ())

    def add(self, name: str, index: int) -> None:
        """Add a node that holds it now."""
        self._holders[name] = (*self._holders.get(name, ()), index)

    def drop(self, name: str, index: int) -> None:
        """Remove a node that holds it no longer."""
        others = tuple(each for each in self._holders[name] if each != index)
        if others:
            self._holders[name] = others
        else:
            del self._holders[name]

    def put(self, index: int, old: Collection[str], new: Collection[str]) -> None:
        """Replace the names ``old`` of a node by ``new``."""
        for name in old:
            if name not in new:
                self.drop(name, index)
        for name in new:
            if name not in old:
                self.add(name, index)


class ManyHolders:
    """The nodes that hold a thing which thousands of nodes may hold, such as an image, by its name."""

    def __init__(self) -> None:
        self._holders: dict[str, set[int]] = {}

    def of(self, name: str) -> Collection[int]:
        """Return the indexes of the nodes that have it."""
        return self._holders.get(name, ())

    def put(self, index: int, old: frozenset[str], new: frozenset[str]) -> None:
        """Replace the names ``old`` of a node by ``new``."""
        for name in old - new:
            there = self._holders[name]
            there.remove(index)
            if not there:
                del self._holders[name]
        for name in new - old:
            self._holders.setdefault(name, set()).add(index)


class Spellings:
    """The names that differ from one only by the case of their letters.

    Only names with capitals are kept: most clouds have none.
    """

    def __init__(self) -> None:
        self._with_capitals: dict[str, set[str]] = {}

    def of(self, name: str) -> list[str]:
        """Return the names that may be meant: those with capitals that were added, and the one without."""
        lowered = name.lower()
        return [lowered, *sorted(self._with_capitals.get(lowered, ()))]

    def add(self, name: str) -> None:
        """Add a name that a node has."""
        if name != (lowered := name.lower()):
            self._with_capitals.setdefault(lowered, set()).add(name)

    def drop(self, name: str) -> None:
        """Remove a name that no node has any more."""
        if name != (lowered := name.lower()):
            others = self._with_capitals[lowered]
            others.remove(name)
            if not others:
                del self._with_capitals[lowered]


class NodeNames:
    """The names of nodes, by index and the other way round.

    ``hosts`` (names of compute services), ``nodes`` (uuids of root providers) and ``nodenames`` are lists by
    index; a free row keeps the names of the node that it had.
    """

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.nodes: list[str] = []
        self.nodenames: list[str] = []
        self._index: dict[str, int] = {}
        self._named: dict[tuple[str, str], int] = {}
        self._with_nodename = FewHolders()
        self.nodename_spellings = Spellings()

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield each node and its index."""
        return iter(self._index.items())

    def index_of_node(self, node: str) -> int | None:
        """Return the index of the node with a root provider, None if there is none."""
        return self._index.get(node)

    def named(self, host: str, nodename: str) -> int | None:
        """Return the index of the node with both names, None if there is none."""
        return self._named.get((host, nodename))

    def with_nodename(self, nodename: str) -> tuple[int, ...]:
        """Return the indexes of the nodes with a node name."""
        return self._with_nodename.of(nodename)

    def put(self, index: int, node: str) -> None:
        """Add a node: at the end, or in the row of a removed one."""
        if index == len(self.nodes):
            for names in (self.hosts, self.nodes, self.nodenames):
                names.append("")
        self._index[node] = index
        self.nodes[index] = node

    def drop(self, node: str) -> None:
        """Remove a node."""
        del self._index[node]

    def join(self, index: int, report: NodeReport) -> None:
        """Put a node under its names."""
        host, name = names_of(report)
        self.hosts[index], self.nodenames[index] = host, name
        self._named[host, name] = index
        self._with_nodename.add(name, index)
        self.nodename_spellings.add(name)

    def leave(self, index: int, old: NodeReport) -> None:
        """Remove a node from its names."""
        host, name = names_of(old)
        del self._named[host, name]
        self._with_nodename.drop(name, index)
        if not self._with_nodename.of(name):
            self.nodename_spellings.drop(name)


class ServiceNodes:
    """The nodes of each compute service, and the number of each service that has nodes."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[int, None]] = {}
        self._number: dict[str, int] = {}
        self._hosts: list[str] = []
        self._free: list[int] = []
        self.spellings = Spellings()

    def nodes_of(self, host: str) -> Collection[int]:
        """Return the indexes of the nodes of a service."""
        return self._nodes.get(host, ())

    def host(self, service: int) -> str:
        """Return the name of a service by its number."""
        return self._hosts[service]

    def members(self, service: int) -> Collection[int]:
        """Return the indexes of the nodes of a service by its number."""
        return self._nodes[self._hosts[service]]

    def join(self, host: str, index: int) -> int:
        """Add a node; returns the number of its service."""
        number = self._number.get(host)
        if number is None:
            self._nodes[host] = {}
            if self._free:
                number = self._free.pop()
                self._hosts[number] = host
            else:
                number = len(self._hosts)
                self._hosts.append(host)
            self._number[host] = number
            self.spellings.add(host)
        self._nodes[host][index] = None
        return number

    def leave(self, host: str, index: int) -> bool:
        """Remove a node; returns whether its service has none any more."""
        nodes = self._nodes[host]
        del nodes[index]
        if nodes:
            return False
        del self._nodes[host]
        self.spellings.drop(host)
        self._free.append(self._number.pop(host))
        return True


class NodesInCells:
    """The number of each cell, and the count of its nodes. ``cells``: the names by number."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self._number: dict[str, int] = {}
        self._nodes: Counter[str] = Counter()

    def join(self, cell: str) -> int:
        """Add a node; returns the number of its cell."""
        number = self._number.setdefault(cell, len(self.cells))
        if number == len(self.cells):
            self.cells.append(cell)
        self._nodes[cell] += 1
        return number

    def leave(self, cell: str) -> None:
        """Remove a node."""
        self._nodes[cell] -= 1

    def count(self, cell: str) -> int:
        """Return the number of nodes of a cell."""
        return self._nodes[cell]


class NodesAtRows:
    """The index of the node at each row of a fleet, kept until a provider or a node comes or goes."""

    def __init__(self) -> None:
        self._at_row: Rows = np.zeros(0, dtype=np.intp)
        self._fleet: weakref.ref[Fleet] | None = None
        self._roster = 0

    def forget(self) -> None:
        """Drop the indexes: a node has come or gone."""
        self._fleet = None

    def of(self, fleet: Fleet, rows: Rows, nodes: Iterable[tuple[str, int]]) -> Rows:
        """Return the node at each of some rows: intp[len(rows)], -1 where none of ``nodes`` has that root."""
        if self._fleet is None or self._fleet() is not fleet or self._roster != fleet.provider_set_version:
            self._at_row = np.full(fleet.n_rows, -1, dtype=np.intp)
            for node, index in nodes:
                if node in fleet:
                    self._at_row[fleet.row(node)] = index
            self._fleet, self._roster = weakref.ref(fleet), fleet.provider_set_version
        return self._at_row.take(rows)


class TieOrder:
    """The order that breaks ties between nodes: by the uuid of the root provider.

    It is the same in every process and after every restart. An index is not: it depends on the nodes that
    came and went before. ``nodes``: the uuids by index; after each change of them `forget` must be called.
    """

    def __init__(self, nodes: list[str]) -> None:
        self._nodes = nodes
        self._in_order: list[int] = []
        self._order: Indexes = np.zeros(0, dtype=np.intp)
        self._ranks: Indexes | None = None

    def forget(self) -> None:
        """Drop the order: a node has come."""
        self._ranks = None

    def ranks(self) -> Indexes:
        """Return the position of each node in the order: intp[size]."""
        if self._ranks is None:
            # To sort a list that is nearly in order is ten times as quick as to sort it anew.
            self._in_order.extend(range(len(self._in_order), len(self._nodes)))
            self._in_order.sort(key=self._nodes.__getitem__)
            self._order = np.array(self._in_order, dtype=np.intp)
            self._ranks = np.empty(len(self._nodes), dtype=np.intp)
            self._ranks[self._order] = np.arange(len(self._nodes))
        return self._ranks

    def order(self) -> Indexes:
        """Return all nodes in the order: intp[size], the reverse of `ranks`."""
        self.ranks()
        return self._order


def names_of(report: NodeReport) -> tuple[str, str]:
    """Return the names of a node: of its compute service, and its own."""
    return report.host, report.nodename or report.host
