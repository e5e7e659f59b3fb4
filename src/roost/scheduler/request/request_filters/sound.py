"""Virtio sound devices need nodes that have them."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits

_MODELS = ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")


def require_sound(query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions) -> CandidateQuery:
    """Require COMPUTE_SOUND_MODEL_VIRTIO on the root for the sound model ``virtio``, nothing for others."""
    if FlavorImage(spec.flavor, spec.image).agreed("sound_model", _MODELS) != "virtio":
        return query
    return with_root_traits(query, "COMPUTE_SOUND_MODEL_VIRTIO")
