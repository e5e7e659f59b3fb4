"""Packed virtqueues need nodes that have them."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits


def require_packed_virtqueue(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_NET_VIRTIO_PACKED on the root for ``virtio_packed_ring`` of flavor or image."""
    if not FlavorImage(spec.flavor, spec.image).agreed_flag("virtio_packed_ring"):
        return query
    return with_root_traits(query, "COMPUTE_NET_VIRTIO_PACKED")
