"""Flavors with a device profile need nodes that can attach accelerators."""

from roost.model.device_profiles import PROFILE
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits


def require_accelerators(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_ACCELERATORS on the root for the extra spec ``accel:device_profile``."""
    if not spec.flavor.extra_specs.get(PROFILE):
        return query
    return with_root_traits(query, "COMPUTE_ACCELERATORS")
