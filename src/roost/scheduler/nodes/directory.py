"""Finds nodes by root provider, name, instance, cached image, aggregate, or row of a fleet."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.aggregate import HostAggregate
from roost.model.node_event import WordSaid
from roost.model.operator_word import Subject
from roost.scheduler.nodes.aggregates import NodeAggregates
from roost.scheduler.nodes.columns import NodeColumns
from roost.scheduler.nodes.labels import Indexes, Labels, Values
from roost.scheduler.nodes.lookups import (
    FewHolders,
    ManyHolders,
    NodeNames,
    NodesAtRows,
    NodesInCells,
    ServiceNodes,
    TieOrder,
)


class NodeDirectory(NodeColumns):
    """The lookups of a node table. The table updates them for each node that comes, changes or goes.

    Lists by index: ``hosts`` (names of compute services), ``nodes`` (uuids of root providers), ``nodenames``.
    ``cells``: the names of the cells, by the number in the column ``cell``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names = NodeNames()
        self.hosts, self.nodes, self.nodenames = self._names.hosts, self._names.nodes, self._names.nodenames
        self._tie_order = TieOrder(self.nodes)
        self._in_cells = NodesInCells()
        self.cells = self._in_cells.cells
        self._services = ServiceNodes()
        self._with_instance = FewHolders()
        self._with_image = ManyHolders()
        self._aggregates = NodeAggregates()
        self._at_rows = NodesAtRows()
        self._in_aggregates: dict[Hashable, Indexes] = {}

    def __len__(self) -> int:
        return len(self._names)

    def indexes(self) -> list[int]:
        """Return the indexes of all nodes, in the order in which they came."""
        return [index for _, index in self._names]

    @property
    def tie_rank(self) -> Indexes:
        """The position of each node in the order that breaks ties, see `TieOrder`: intp[size]."""
        return self._tie_order.ranks()

    @property
    def tie_order(self) -> Indexes:
        """All rows in the order that breaks ties: intp[size], the reverse of `tie_rank`."""
        return self._tie_order.order()

    def index_of_node(self, node: str) -> int | None:
        """Return the index of the node with a root provider, None if there is none."""
        return self._names.index_of_node(node)

    def index(self, host: str, nodename: str = "") -> int | None:
        """Return the index of a node by the names of its service and its own; None if there is none.

        Without ``nodename``: the node that has its service's name, else the one with the lowest uuid.
        """
        found = self._names.named(host, nodename or host)
        if found is None and not nodename:
            found = min(self.indexes_of_host(host), key=self.nodes.__getitem__, default=None)
        return found

    def indexes_of_host(self, host: str) -> Collection[int]:
        """Return the indexes of all nodes of a compute service, in the order in which they were reported."""
        return self._services.nodes_of(host)

    def indexes_of_requested_host(self, host: str) -> list[int]:
        """Return the indexes of all nodes of the compute services that a request means by a name: the case of
        its letters does not count."""
        return [
            index for spelt in self._services.spellings.of(host) for index in self._services.nodes_of(spelt)
        ]

    def nodes_of_cell(self, cell: str) -> set[str]:
        """Return the root providers of the nodes of a cell."""
        return {node for node, index in self._names if self._reports[index].cell == cell}

    def count_of_cell(self, cell: str) -> int:
        """Return the number of nodes of a cell."""
        return self._in_cells.count(cell)

    def indexes_of_nodename(self, nodename: str) -> tuple[int, ...]:
        """Return the indexes of the nodes with a node name: mostly one, several if services share the name.

        The name of a compute service belongs to its own nodes: no node of another service is found by it.
        """
        found = self._names.with_nodename(nodename)
        if self._services.nodes_of(nodename):
            return tuple(index for index in found if self.hosts[index] == nodename)
        return found

    def indexes_of_requested_nodename(self, nodename: str) -> list[int]:
        """Return the indexes of the nodes that a request means by a node name: the case of its letters does
        not count."""
        names = self._names.nodename_spellings.of(nodename)
        return [index for spelt in names for index in self.indexes_of_nodename(spelt)]

    def indexes_of_instance(self, instance: str) -> tuple[int, ...]:
        """Return the indexes of the nodes that report an instance: mostly one, two during a move."""
        return self._with_instance.of(instance)

    def indexes_with_image(self, image: str) -> Collection[int]:
        """Return the indexes of the nodes that have an image in their cache."""
        return self._with_image.of(image)

    def indexes_of_rows(self, fleet: Fleet, rows: Rows) -> Rows:
        """Return the node at each row of the fleet: intp[len(rows)], -1 where no node has that root."""
        return self._at_rows.of(fleet, rows, self._names)

    # Operators' words

    def set_words(self, words: Mapping[Subject, bool]) -> list[WordSaid]:
        """Take in subjects that operators have enabled (True) or disabled. Returns the events of changes.

        A subject need not be in the table: it may come later.
        """
        events = [
            WordSaid(*subject, enabled)
            for subject, enabled in sorted(words.items())
            if enabled == (subject in self._disabled)
        ]
        for event in events:
            self.hear(event)
        return events

    @property
    def disabled(self) -> AbstractSet[Subject]:
        """Cells, hosts and nodes that operators have disabled."""
        return self._disabled

    def hear(self, event: WordSaid) -> None:
        """Take in an operator's word."""
        self._note(event)
        cell, host, node = subject = Subject(event.cell, event.host, event.node)
        (self._disabled.discard if event.enabled else self._disabled.add)(subject)
        if node:
            found = self.index_of_node(node)
            affected: Collection[int] = () if found is None else (found,)
        elif host:
            affected = self.indexes_of_host(host)
        else:
            affected = [index for _, index in self._names]
        for index in affected:
            report = self._reports[index]
            enabled = report.enabled and not self._is_disabled(report)
            if report.cell == cell and self.enabled.item(index) != enabled:
                self.enabled[index] = enabled
                self.invalidations.append(index)

    # Host aggregates

    def metadata(self, key: str) -> Labels[Values] | None:
        """Return the values of an aggregate metadata key by node; None if no aggregate of a node has it."""
        return self._aggregates.labels(key)

    def metadata_keys(self, prefix: str) -> Collection[str]:
        """Return the aggregate metadata keys with a prefix that some node has."""
        return self._aggregates.keys(prefix)

    def aggregates_with(self, key: str, value: str) -> frozenset[str]:
        """Return the uuids of the aggregates whose metadata has ``key`` equal to ``value``."""
        return self._aggregates.having(key, value)

    def aggregate_name(self, uuid: str) -> str | None:
        """Return the name of a host aggregate; None if there is none."""
        return self._aggregates.name(uuid)

    def aggregates_by_metadata(self) -> Iterator[tuple[str, str, Collection[str]]]:
        """Yield each metadata key and value, and the uuids of the aggregates that have them."""
        return self._aggregates.by_metadata()

    def all_aggregates(self) -> list[HostAggregate]:
        """Return all host aggregates, by name."""
        return self._aggregates.all()

    def aggregates(self, index: int) -> tuple[HostAggregate, ...]:
        """Return the host aggregates that a node is in, in order of their uuids."""
        return self._aggregates.of(self.nodes[index])

    def in_aggregates(self, any_of: tuple[frozenset[str], ...], forbidden: frozenset[str]) -> Indexes:
        """Return the nodes in an aggregate of each set of ``any_of`` and in none of ``forbidden``."""
        found = self._in_aggregates.get((any_of, forbidden))
        if found is None:
            nodes = {node for node, _ in self._names} - self._aggregates.members(forbidden)
            for uuids in any_of:
                nodes &= self._aggregates.members(uuids)
            indexes = sorted(index for node in nodes if (index := self.index_of_node(node)) is not None)
            found = self._in_aggregates[any_of, forbidden] = np.array(indexes, dtype=np.intp)
        return found
