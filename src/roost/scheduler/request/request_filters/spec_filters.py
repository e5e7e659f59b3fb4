"""Request filters that read the request spec and the options alone: traits of nodes that a request needs.

Their results are cached for requests that are alike.
"""

from typing import Final

import msgspec
import os_traits
import structlog

from roost.model.device_profiles import PROFILE
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.features import virtual_tpm
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.request_filters.narrowed_query import SpecFilter, with_root_traits

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


def leave_out_disabled(query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions) -> CandidateQuery:
    """Forbid COMPUTE_STATUS_DISABLED on the root."""
    return msgspec.structs.replace(query, root_forbidden=query.root_forbidden | {DISABLED_TRAIT})


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


def require_accelerators(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_ACCELERATORS on the root for the extra spec ``accel:device_profile``."""
    if not spec.flavor.extra_specs.get(PROFILE):
        return query
    return with_root_traits(query, "COMPUTE_ACCELERATORS")


def require_packed_virtqueue(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_NET_VIRTIO_PACKED on the root for ``virtio_packed_ring`` of flavor or image."""
    if not FlavorImage(spec.flavor, spec.image).agreed_flag("virtio_packed_ring"):
        return query
    return with_root_traits(query, "COMPUTE_NET_VIRTIO_PACKED")


def require_remote_managed_ports(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_REMOTE_MANAGED_PORTS on the root if one of the ports is remotely managed."""
    if not any(network.port_id and network.remote_managed for network in spec.requested_networks):
        return query
    return with_root_traits(query, "COMPUTE_REMOTE_MANAGED_PORTS")


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


_MODELS = ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")


def require_sound(query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions) -> CandidateQuery:
    """Require COMPUTE_SOUND_MODEL_VIRTIO on the root for the sound model ``virtio``, nothing for others."""
    if FlavorImage(spec.flavor, spec.image).agreed("sound_model", _MODELS) != "virtio":
        return query
    return with_root_traits(query, "COMPUTE_SOUND_MODEL_VIRTIO")


_SECURITY = ("user", "host", "deployment")


def require_tpm_secret_security(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require the trait of ``hw:tpm_secret_security`` (default ``user``) on the root, for a virtual TPM."""
    asked = FlavorImage(spec.flavor, spec.image)
    if virtual_tpm(asked) is None:
        return query
    security = asked.of_flavor("tpm_secret_security", _SECURITY) or "user"
    return with_root_traits(query, f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{security.upper()}")


SPEC_FILTERS: Final[tuple[SpecFilter, ...]] = (
    require_image_type,
    leave_out_disabled,
    require_traits_of_image,
    require_accelerators,
    require_packed_virtqueue,
    require_remote_managed_ports,
    require_ephemeral_encryption,
    require_sound,
    require_tpm_secret_security,
)
