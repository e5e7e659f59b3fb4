"""The outstanding claims: amounts that claims took from nodes and that no report of these nodes contains yet.

A node's agent reports every few seconds. Without the claims in between, a burst of requests would see the
same number of instances on the best node again and again. A claim counts until one of these events:

    claimed ─▶ a report of the node lists the instance: from now on the report counts
       │   ─▶ the instance is built: it burdens the disk no longer, but counts as an instance
       └───▶ the attempt failed, the claim moved to another node, or the instance is gone: nothing counts

A report that does not list the instance changes nothing: it may be older than the claim. Pure: claims and
reports in, sums out.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from roost.model.assignment import Assigned, Assignment, digest
from roost.model.node import NodeReport
from roost.model.spec import RequestSpec


class TakenAmounts(msgspec.Struct, frozen=True):
    """The amounts that a claim takes from the node ``index``: an instance, MiB of memory and of local disk.

    ``building``: it counts as an I/O operation too. ``assignment``: the node's hardware that it has.
    """

    index: int
    memory_mb: int = 0
    disk_mb: int = 0
    building: bool = True
    assignment: Assignment | None = None


def taken_by(spec: RequestSpec) -> tuple[int, int]:
    """Return the MiB of memory and of local disk of an instance, as nodes report them: without swap."""
    flavor = spec.flavor
    gigabytes = (0 if spec.volume_backed else flavor.disk_gb) + flavor.ephemeral_gb
    return flavor.memory_mb, gigabytes * 1024


class Sums(msgspec.Struct):
    """The sums of the outstanding claims on one node; memory and disk in MiB."""

    instances: int = 0
    io_ops: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    pci_devices: int = 0


class OutstandingClaims:
    """Claims by consumer uuid, and by node index."""

    def __init__(self) -> None:
        self._taken: dict[str, TakenAmounts] = {}
        self._on: dict[int, dict[str, None]] = {}
        self._sums: dict[int, Sums] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def __iter__(self) -> Iterator[tuple[str, TakenAmounts]]:
        return iter([*self._taken.items()])

    def of(self, instance: str) -> TakenAmounts | None:
        """Return the amounts of an instance's claim; None if it is not outstanding."""
        return self._taken.get(instance)

    def put(self, instance: str, taken: TakenAmounts) -> None:
        """Set the claim of an instance, in place of an earlier one."""
        self.drop(instance)
        self._taken[instance] = taken
        self._on.setdefault(taken.index, {})[instance] = None
        self._add(taken, 1)

    def drop(self, instance: str) -> TakenAmounts | None:
        """Remove the claim of an instance. Returns its amounts, None if there was none."""
        taken = self._taken.pop(instance, None)
        if taken is not None:
            on = self._on[taken.index]
            del on[instance]
            self._add(taken, -1)
            if not on:
                del self._on[taken.index], self._sums[taken.index]
        return taken

    def reported(self, index: int, report: NodeReport) -> None:
        """Drop the claims that a report of their node contains.

        A report that counts more instances than it lists contains all that are built.
        """
        unlisted = report.num_instances > len(report.instances)
        for instance in [*self._on.get(index, ())]:
            if instance in report.instances or (unlisted and not self._taken[instance].building):
                self.drop(instance)

    def drop_all(self, index: int) -> None:
        """Remove all claims on a node."""
        for instance in [*self._on.get(index, ())]:
            self.drop(instance)

    def sums(self, index: int) -> Sums | None:
        """Return the sums of the claims on a node; None without claims."""
        return self._sums.get(index)

    def _add(self, taken: TakenAmounts, sign: int) -> None:
        sums = self._sums.get(taken.index)
        if sums is None:
            sums = self._sums[taken.index] = Sums()
        sums.instances += sign
        sums.io_ops += sign * taken.building
        sums.memory_mb += sign * taken.memory_mb
        sums.disk_mb += sign * taken.disk_mb
        if taken.assignment is not None:
            sums.pci_devices += sign * sum(each.count for each in taken.assignment.devices)

    def assigned(self, index: int) -> Assigned:
        """Return the assignments of the outstanding claims on a node."""
        taken = {instance: self._taken[instance] for instance in self._on.get(index, ())}
        return {name: each.assignment for name, each in taken.items() if each.assignment is not None}

    def instances_on(self, index: int) -> Mapping[str, None]:
        """Return the instances whose outstanding claim is on a node."""
        return self._on.get(index, {})


NOTHING: Assigned = MappingProxyType({})
"""No consumer has an assignment."""


def unreported(report: NodeReport, assigned: Mapping[str, Assignment]) -> Assigned:
    """Return the assignments among those on a node that its last report does not count.

    The use of a node is that of its report and of the assignments whose consumers the report does not
    contain: it may be older than their claims. A report that lists a consumer with another assignment than
    the ledger's was made before the consumer came back to the node; then both count until the next report.
    """
    if not assigned:
        return NOTHING
    return {
        consumer: assignment
        for consumer, assignment in assigned.items()
        if not _counts(report, consumer, assignment)
    }


def _counts(report: NodeReport, consumer: str, assignment: Assignment) -> bool:
    listed = report.instances.get(consumer)
    return listed is not None and (listed.assignment is None or listed.assignment == digest(assignment))
