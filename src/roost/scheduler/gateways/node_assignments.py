"""The assignments on nodes during one run over HTTP: those that placement returns, and the run's own.

Roost's placement keeps assignments. A run reads those of the nodes that it may choose, and its claims name
the digest of the assignments they were fitted beside: a claim is refused if another scheduler came first, and
the run reads the node again. OpenStack's placement keeps none. There the scheduler's memory of its
outstanding claims stands for them, so that one scheduler assigns nothing twice. Two schedulers may, until the
nodes report.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from roost.model.assignment import Assigned, Assignment, digest_of_all
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.outstanding import NOTHING, taken_by
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_key
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import translated
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim


class NodeAssignments(Protocol):
    """The assignments on the nodes that a run may choose, its own choices included."""

    def on(self, node: str) -> Assigned:
        """Return the assignments on a node, without those of the instance that the run moves away from there.

        The result never changes: when the assignments do, it is another object.
        """

    def beside(self, node: str) -> str | None:
        """Return the digest of the assignments that placement returned for a node; None: it keeps none."""

    def chosen(self, claim: Claim) -> None:
        """Note a claim that is about to be written."""

    def made(self, claims: Iterable[Claim]) -> None:
        """Note claims that were written."""

    def refused(self, claims: Iterable[Claim]) -> None:
        """Note claims that were not written."""

    async def read_again(self, node: str) -> None:
        """Read the assignments on a node again, which have changed. Raises: as `translated`."""


class NoAssignments:
    """No assignments, for a request to which no filter assigns anything."""

    def on(self, node: str) -> Assigned:
        return NOTHING

    def beside(self, node: str) -> str | None:
        return None

    def chosen(self, claim: Claim) -> None:
        pass

    def made(self, claims: Iterable[Claim]) -> None:
        pass

    def refused(self, claims: Iterable[Claim]) -> None:
        pass

    async def read_again(self, node: str) -> None:
        pass


class PlacementAssignments:
    """The assignments that Roost's placement returns.

    ``leaving``: the instance whose own assignment counts as free.
    """

    def __init__(
        self, placement: RunPlacement, read: dict[str, dict[str, Assignment]], leaving: str | None
    ) -> None:
        self._placement = placement
        self._read = read
        self._leaving = leaving
        self._chosen: dict[str, Assignment] = {}

    def on(self, node: str) -> Assigned:
        read = self._read.get(node, {})
        chosen = {consumer: each for consumer, each in self._chosen.items() if each.node == node}
        found = {**read, **chosen} if chosen else read
        if self._leaving in found:
            return {consumer: each for consumer, each in found.items() if consumer != self._leaving}
        return found

    def beside(self, node: str) -> str | None:
        return digest_of_all(self._read.get(node, {}))

    def chosen(self, claim: Claim) -> None:
        if claim.candidate.assignment is not None:
            self._chosen[claim.instance] = claim.candidate.assignment

    def made(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            assignment = self._chosen.pop(claim.instance, None)
            if assignment is not None:
                # Never in place: filters cache their results by the identity of this object.
                read = self._read.get(assignment.node, {})
                self._read[assignment.node] = {**read, claim.instance: assignment}

    def refused(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._chosen.pop(claim.instance, None)

    async def read_again(self, node: str) -> None:
        read = await translated(self._placement.assignments([node]))
        self._read.update(read or {})


class RememberedAssignments:
    """The assignments of this scheduler's outstanding claims, for a placement that keeps none.

    A claim counts from the moment before it is written: other runs of this process choose meanwhile.
    """

    def __init__(self, request: SchedulingRequest, table: NodeTable) -> None:
        self._table = table
        self._taken = taken_by(request.spec)

    def on(self, node: str) -> Assigned:
        index = self._table.index_of_node(node)
        return NOTHING if index is None else self._table.outstanding.assigned(index)

    def beside(self, node: str) -> str | None:
        return None

    def chosen(self, claim: Claim) -> None:
        index = self._table.index_of_node(claim.candidate.root)
        if index is not None and claim.candidate.assignment is not None:
            self._table.claim(claim.instance, index, *self._taken, claim.candidate.assignment)

    def made(self, claims: Iterable[Claim]) -> None:
        pass

    def refused(self, claims: Iterable[Claim]) -> None:
        self._table.release(*(claim.instance for claim in claims))

    async def read_again(self, node: str) -> None:
        pass


async def assignments_for(
    placement: RunPlacement,
    request: SchedulingRequest,
    pools: HostPools,
    hosts: Indexes,
    leaving: str | None = None,
) -> NodeAssignments:
    """Return the assignments on some nodes (indexes of the table), read if the request may be assigned
    anything.

    Raises: as `translated`.
    """
    narrowing = [each for each in pools.plugins.filters if each.narrow is not None]
    if all(ask_key(each, request) is None for each in narrowing):
        return NoAssignments()
    nodes = _with_hardware(pools.table, hosts)
    if not nodes:
        return NoAssignments()
    read = await translated(placement.assignments(nodes))
    if read is None:
        return RememberedAssignments(request, pools.table)
    return PlacementAssignments(placement, read, leaving)


def _with_hardware(table: NodeTable, hosts: Indexes) -> Sequence[str]:
    """Return the nodes that report hardware which can be assigned."""
    found = []
    for index in hosts.tolist():
        report = table.report(index)
        if report.numa_topology is not None or report.pci_device_pools:
            found.append(table.nodes[index])
    return found
