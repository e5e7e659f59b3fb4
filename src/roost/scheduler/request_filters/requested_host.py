"""A host that is asked for by name: only its tree."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters.narrowing import narrowed


def ask_for_host(
    query: CandidateQuery, spec: RequestSpec, table: NodeTable, options: SchedulerOptions
) -> CandidateQuery:
    """``in_tree`` of the host's root provider.

    Sharing providers outside of the tree do not serve the unsuffixed group then: placement's rule.
    """
    destination = spec.requested_destination
    if destination is None or destination.host is None:
        return query
    indexes = table.indexes_of_host(destination.host)
    if not indexes:
        raise BadRequestSpec(f"requested host {destination.host!r} is unknown")
    if len(indexes) > 1:
        raise BadRequestSpec(f"requested host {destination.host!r} has {len(indexes)} nodes, not one")
    [index] = indexes
    return narrowed(query, in_tree=table.nodes[index])
