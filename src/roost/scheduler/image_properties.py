"""Properties of images under the names that Nova uses today.

Source: ``nova.objects.image_meta.ImageMetaProps``.
"""

from collections.abc import Mapping

_LEGACY = {
    "architecture": "hw_architecture",
    "hypervisor_type": "img_hv_type",
    "hypervisor_version_requires": "img_hv_requested_version",
    "vm_mode": "hw_vm_mode",
}
"""Earlier name -> name of today, of the properties that the scheduler reads."""

_VIF_MODELS = {
    "virtuale1000": "e1000",
    "virtuale1000e": "e1000e",
    "virtualpcnet32": "pcnet",
    "virtualsriovethernetcard": "sriov",
    "virtualvmxnet": "vmxnet",
    "virtualvmxnet3": "vmxnet3",
}
"""Name in VMware images -> name of today."""

_ARCHITECTURES = {
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86_32": "i686",
    "x86_32p": "i686",
    "amd64": "x86_64",
}

_TRUE = ("1", "t", "true", "on", "y", "yes")


def with_current_names(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with earlier names and spellings of values replaced.

    A property under its name of today wins over its earlier name.
    """
    found = dict(properties)
    for legacy, name in _LEGACY.items():
        if legacy in found:
            found.setdefault(name, found[legacy])
    if adapter := found.get("vmware_adaptertype"):
        found.setdefault("hw_disk_bus", "ide" if adapter == "ide" else "scsi")
    for name in ("hw_architecture", "hw_emulation_architecture"):
        if name in found:
            found[name] = canonical_architecture(found[name])
    if "hw_vif_model" in found:
        model = found["hw_vif_model"].lower()
        found["hw_vif_model"] = _VIF_MODELS.get(model, model)
    return found


def canonical_architecture(name: str) -> str:
    """Nova's name for an architecture, such as ``x86_64`` for ``amd64``."""
    lower = name.lower()
    return _ARCHITECTURES.get(lower, lower)


def is_true(text: str) -> bool:
    """Whether a text is one of those that mean yes; all others mean no."""
    return text.strip().lower() in _TRUE
