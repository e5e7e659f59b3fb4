"""Assignments in the writes of consumers: the assignment of each after a write, and the check of conflicts.

A claim's assignment is chosen on the state that the claim is committed on, or, by a scheduler in another
process, beside assignments whose digest the write names. The check here needs no report of a node: no CPU and
no named device of a node may be assigned twice.
"""

from collections.abc import Iterator, Sequence

import msgspec

from roost.ledger import Held, State
from roost.model.allocation import Allocations, GroupClaim
from roost.model.assignment import Assignment, clashes, digest_of_all
from roost.placement.errors import AssignmentChanged, AssignmentRefused, BadRequest


class ConsumerWrite(msgspec.Struct, frozen=True, kw_only=True):
    """All allocations of one consumer after the write; without any the consumer is deleted.

    ``generation`` is the consumer's present one, None for a consumer that must not exist yet, or UNSET, which
    is not checked. ``consumer_type`` None keeps the present type. ``group`` makes the consumer a member of a
    server group, if the condition of the claim is met; None keeps the present group.

    ``assignment`` is the consumer's assignment of a node's hardware after the write; None removes the present
    one, UNSET keeps it (see `roost.placement.commands.assignment_condition`). ``beside`` is the digest of all
    assignments on the node that the assignment was fitted beside; None: it is not checked.
    ``mappings``: the providers of each request group. They are sent over HTTP, as the API takes them since
    1.34; no service stores them.
    """

    consumer: str
    allocations: Allocations
    project_id: str
    user_id: str
    consumer_type: str | None = None
    generation: int | msgspec.UnsetType | None = msgspec.UNSET
    group: GroupClaim | None = None
    assignment: Assignment | msgspec.UnsetType | None = msgspec.UNSET
    beside: str | None = None
    mappings: dict[str, list[str]] = {}


def check_assignment(state: State, write: ConsumerWrite, assignment: Assignment) -> None:
    """Check that a write's assignment makes sense.

    Raises: `BadRequest` if its node is no root provider that the consumer takes from, or if it has the same
    CPU or device twice.
    """
    fleet, node = state.fleet, assignment.node
    row = fleet.find_row(node)
    if row < 0:
        raise BadRequest(f"Assignment on resource provider '{node}' that does not exist.")
    if fleet.root.item(row) != row:
        raise BadRequest(f"Assignment on resource provider '{node}' that is not the root of a tree.")
    if not _takes_from(state, write, node):
        raise BadRequest(
            f"Assignment of consumer {write.consumer} on resource provider '{node}', from whose tree it has "
            "no allocation."
        )
    seen: set[str] = set()
    for part in _parts(assignment):
        if part in seen:
            raise BadRequest(f"Assignment of consumer {write.consumer} has {part} twice.")
        seen.add(part)


def assignments_after(
    state: State, writes: Sequence[ConsumerWrite], held: Sequence[Held | None]
) -> list[Assignment | None]:
    """Return the assignment of each consumer after the writes.

    A write that states one sets it. A consumer that takes over all allocations of another one in the same
    request takes over its assignment: Nova moves the allocations of an instance to its migration in this way,
    and back. Any other consumer keeps its assignment as long as it takes from the tree of its node.
    """
    after = [
        # Most consumers have no assignment, and their claims must stay fast.
        None
        if not isinstance(write.assignment, Assignment)
        and (before is None or before.consumer.assignment is None)
        else _own(state, write, before)
        for write, before in zip(writes, held, strict=True)
    ]
    if len(writes) > 1:
        for number, source in enumerate(held):
            if source is None or source.consumer.assignment is None:
                continue
            heir = _heir(number, source, writes, held)
            if heir is not None:
                if writes[number].assignment is msgspec.UNSET:
                    after[number] = None
                after[heir] = source.consumer.assignment
    return after


def judge(
    state: State,
    writes: Sequence[ConsumerWrite],
    held: Sequence[Held | None],
    after: Sequence[Assignment | None],
) -> None:
    """Check the assignments that the writes would leave, before any of the writes is applied.

    Raises:
        AssignmentChanged: the assignments of a node have changed since a write was fitted beside them.
        AssignmentRefused: another consumer has exclusive use of the same CPU or device.
    """
    for write in writes:
        if write.beside is not None and isinstance(write.assignment, Assignment):
            node = write.assignment.node
            present = digest_of_all(state.fleet.assigned.on(node))
            if present != write.beside:
                raise AssignmentChanged(
                    f"The assignments on resource provider '{node}' have the digest {present} now, and not "
                    f"{write.beside}: read them and choose again."
                )
    written = {write.consumer: number for number, write in enumerate(writes)}
    for number, (write, before, assignment) in enumerate(zip(writes, held, after, strict=True)):
        if assignment is None or (before is not None and before.consumer.assignment == assignment):
            continue
        others = {
            consumer: each
            for consumer, each in state.fleet.assigned.on(assignment.node).items()
            if consumer not in written
        }
        for consumer, other in written.items():
            each = after[other]
            if other != number and each is not None and each.node == assignment.node:
                others[consumer] = each
        for consumer, parts in clashes(assignment, others).items():
            raise AssignmentRefused(
                f"Unable to assign to consumer {write.consumer} on resource provider '{assignment.node}': "
                f"consumer {consumer} has {parts}."
            )


def _parts(assignment: Assignment) -> Iterator[str]:
    """Yield the CPUs and devices of which an assignment has exclusive use, in words."""
    for cell in assignment.cells:
        yield from (f"host CPU {cpu}" for _, cpu in cell.pinned)
        yield from (f"host CPU {cpu}" for cpu in cell.reserved)
        yield from (f"host CPU {cpu}" for cpu in cell.withheld)
    for devices in assignment.devices:
        yield from (f"PCI device {address}" for address in devices.addresses)


def _own(state: State, write: ConsumerWrite, before: Held | None) -> Assignment | None:
    """Return the assignment of a consumer after its write, unless it takes over another one."""
    if not write.allocations:
        return None
    if not isinstance(write.assignment, msgspec.UnsetType):
        return write.assignment
    kept = None if before is None else before.consumer.assignment
    return kept if kept is not None and _takes_from(state, write, kept.node) else None


def _heir(
    number: int, source: Held, writes: Sequence[ConsumerWrite], held: Sequence[Held | None]
) -> int | None:
    """Return the number of the write that takes over all allocations of a consumer that gets others."""
    if writes[number].allocations == source.allocations:
        return None
    for heir, (write, before) in enumerate(zip(writes, held, strict=True)):
        takes = write.allocations == source.allocations and write.assignment is msgspec.UNSET
        if heir != number and takes and (before is None or before.allocations != write.allocations):
            return heir
    return None


def _takes_from(state: State, write: ConsumerWrite, node: str) -> bool:
    """Return whether a consumer has an allocation in the tree of a root provider after its write."""
    fleet = state.fleet
    row = fleet.find_row(node)
    return row >= 0 and any(fleet.root.item(fleet.row(provider)) == row for provider in write.allocations)
