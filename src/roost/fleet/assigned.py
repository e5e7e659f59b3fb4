"""The assignments of hardware to consumers, by node."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from roost.fleet.errors import Inconsistent
from roost.model.assignment import Assigned, Assignment

_NOTHING: Assigned = MappingProxyType({})


class AssignedOnNodes:
    """All assignments. A node without assignments has no entry.

    The uuid of a node's root provider identifies the node, not a row: an assignment outlives its provider if
    the tree is taken apart.
    """

    def __init__(self) -> None:
        self._on: dict[str, Assigned] = {}

    @classmethod
    def load(cls, assignments: Iterable[tuple[str, Assignment]]) -> "AssignedOnNodes":
        """Load assignments: pairs of the consumer's uuid and its assignment."""
        on: dict[str, dict[str, Assignment]] = {}
        for consumer, assignment in assignments:
            on.setdefault(assignment.node, {})[consumer] = assignment
        made = cls()
        made._on = {node: MappingProxyType(assigned) for node, assigned in on.items()}
        return made

    def __len__(self) -> int:
        return len(self._on)

    def nodes(self) -> Iterable[str]:
        """Return the nodes with assignments, in no order."""
        return self._on.keys()

    def on(self, node: str) -> Assigned:
        """Return the assignments on a node: consumer -> assignment.

        The result never changes. It is the same object until an assignment on the node changes, so that
        callers can cache by identity.
        """
        return self._on.get(node, _NOTHING)

    def check(self, consumer: str, before: Assignment | None, after: Assignment | None) -> None:
        """Check that a consumer has the assignment ``before``, and may get ``after``.

        Raises: `Inconsistent`.
        """
        if before is not None and self.on(before.node).get(consumer) != before:
            raise Inconsistent(f"consumer {consumer} lacks the stated assignment on node {before.node}")
        elsewhere = after is not None and (before is None or before.node != after.node)
        if after is not None and elsewhere and consumer in self.on(after.node):
            raise Inconsistent(f"consumer {consumer} already has an assignment on node {after.node}")

    def change(self, consumer: str, before: Assignment | None, after: Assignment | None) -> None:
        """Take the assignment ``before`` from a consumer, and give it ``after``."""
        if before is not None:
            left = {name: each for name, each in self._on[before.node].items() if name != consumer}
            self._put(before.node, left)
        if after is not None:
            self._put(after.node, {**self.on(after.node), consumer: after})

    def copy(self) -> "AssignedOnNodes":
        """Return an independent copy. It shares the assignments of each node, which never change in place."""
        other = AssignedOnNodes()
        other._on = self._on.copy()
        return other

    def _put(self, node: str, assigned: Mapping[str, Assignment]) -> None:
        if assigned:
            self._on[node] = MappingProxyType(assigned)
        else:
            self._on.pop(node, None)
