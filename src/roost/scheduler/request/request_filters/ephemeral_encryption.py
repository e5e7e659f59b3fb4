"""Encrypted ephemeral disks need nodes that can encrypt them, in the format asked for."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits

_FORMATS = ("plain", "luks", "luksv2")


def require_ephemeral_encryption(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_EPHEMERAL_ENCRYPTION, and the same with the format, on the root.

    The extra specs ``hw:ephemeral_encryption`` and ``hw:ephemeral_encryption_format`` ask for it, or the
    image properties of these names.
    """
    asked = FlavorImage(spec.flavor, spec.image)
    if not asked.agreed_flag("ephemeral_encryption"):
        return query
    trait = "COMPUTE_EPHEMERAL_ENCRYPTION"
    form = asked.agreed("ephemeral_encryption_format", _FORMATS)
    return with_root_traits(query, trait, *([] if form is None else [f"{trait}_{form.upper()}"]))
