"""The assignments on a node that its last report does not count.

The use of a node is that of its report and of the assignments whose consumers the report does not contain: it
may be older than their claims. A report that lists a consumer with another assignment than the ledger's was
made before the consumer came back to the node; then both count until the next report.
"""

from collections.abc import Mapping
from types import MappingProxyType

from roost.model.assignment import Assigned, Assignment, digest
from roost.model.node import NodeReport

NOTHING: Assigned = MappingProxyType({})
"""No consumer has an assignment."""


def unreported(report: NodeReport, assigned: Mapping[str, Assignment]) -> Assigned:
    """Return the assignments among those on a node that its report does not count."""
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
