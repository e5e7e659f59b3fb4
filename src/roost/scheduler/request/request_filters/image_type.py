"""Images need nodes that can read their disk format."""

import os_traits
import structlog

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits

_log = structlog.get_logger()


def require_image_type(query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions) -> CandidateQuery:
    """Require COMPUTE_IMAGE_TYPE_… on the root, by option; not if the root disk is a volume.

    A disk format without a trait requires nothing.
    """
    if not options.request_filters.query_placement_for_image_type_support or spec.volume_backed:
        return query
    if spec.image is None or not spec.image.disk_format:
        return query
    trait = f"COMPUTE_IMAGE_TYPE_{spec.image.disk_format.upper()}"
    if not hasattr(os_traits, trait):
        _log.warning("a disk format has no trait", disk_format=spec.image.disk_format, image=spec.image.id)
        return query
    return with_root_traits(query, trait)
