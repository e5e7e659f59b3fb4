"""A host that is asked for by name: only its tree."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.hosts import HostTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters.narrowing import narrowed


def ask_for_host(
    query: CandidateQuery, spec: RequestSpec, table: HostTable, options: SchedulerOptions
) -> CandidateQuery:
    """``in_tree`` of the host's root provider.

    Sharing providers outside of the tree do not serve the unsuffixed group then: placement's rule.
    """
    destination = spec.requested_destination
    if destination is None or destination.host is None:
        return query
    index = table.index(destination.host)
    if index is None:
        raise BadRequestSpec(f"requested host {destination.host!r} is unknown")
    return narrowed(query, in_tree=table.nodes[index])
