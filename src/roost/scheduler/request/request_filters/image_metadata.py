"""Properties of images need nodes with the devices that they name."""

from typing import Final

import os_traits
import structlog

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits

_log = structlog.get_logger()

_PREFIXES: Final = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
"""Property -> prefix of the traits that its values stand for."""


def require_traits_of_image(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require the traits of the image's devices on the root, by option.

    If one value has no trait, no traits are required at all: the node's driver judges the image then.
    """
    if not options.request_filters.image_metadata_prefilter or not spec.image_properties:
        return query
    properties = with_current_names(spec.image_properties)
    traits = []
    for name, prefix in _PREFIXES.items():
        if name in properties:
            trait = f"{prefix}_{properties[name].replace('-', '_').upper()}"
            if not hasattr(os_traits, trait):
                _log.warning("a property of an image has no trait", property=name, value=properties[name])
                return query
            traits.append(trait)
    return with_root_traits(query, *traits)
