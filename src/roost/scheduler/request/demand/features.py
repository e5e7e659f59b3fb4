"""Traits and resources that extra specs and image properties stand for.

Source: the ``_translate_…`` methods of ``ResourceRequest`` in ``nova/scheduler/utils.py``, and the
constraints that they read from ``nova/virt/hardware.py``.
"""

import re
from collections import Counter
from collections.abc import Iterator

from roost.model.allocation import Resources
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.image_properties import is_true

_MEMORY_ENCRYPTION = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_TPM_VERSIONS = {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"}
_TPM_MODELS = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_ADDRESS_SPACES = {
    "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
}
_PCI_NUMA_POLICIES = ("required", "legacy", "preferred", "socket")
_SECURE_BOOT = ("required", "disabled", "optional")


def resources_of_features(asked: FlavorImage) -> Resources:
    """Return the resources of the unsuffixed group beside processors, memory and disk. Raises
    `BadRequestSpec`."""
    labels = (label.strip() for label in (asked.of_flavor("pmem") or "").split(","))
    found: Resources = dict(Counter(_namespace(label) for label in labels if label))
    if memory_encryption(asked):
        found["MEM_ENCRYPTION_CONTEXT"] = 1
    return found


def traits_of_features(asked: FlavorImage) -> Iterator[str]:
    """Yield the traits that the unsuffixed group requires. Raises `BadRequestSpec`."""
    model = memory_encryption(asked)
    if model is not None:
        yield _MEMORY_ENCRYPTION[model]
    if vtpm := virtual_tpm(asked):
        yield from vtpm
    if asked.agreed("pci_numa_affinity_policy", _PCI_NUMA_POLICIES) == "socket":
        yield "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"
    if asked.agreed("secure_boot", _SECURE_BOOT, prefix="os") == "required":
        yield "COMPUTE_SECURITY_UEFI_SECURE_BOOT"
    mode = asked.agreed("maxphysaddr_mode", _ADDRESS_SPACES)
    if mode is not None:
        yield _ADDRESS_SPACES[mode]
    if _stateless_firmware(asked):
        yield "COMPUTE_SECURITY_STATELESS_FIRMWARE"


def virtual_tpm(asked: FlavorImage) -> tuple[str, str] | None:
    """Return the traits of the virtual TPM's model and version; None if no TPM is asked for."""
    version = asked.agreed("tpm_version", _TPM_VERSIONS)
    if version is None:
        return None
    model = asked.agreed("tpm_model", _TPM_MODELS) or "tpm-tis"
    if model == "tpm-crb" and version != "2.0":
        if asked.of_flavor("tpm_model") is None:
            raise asked.bad_image("hw_tpm_model", f"needs version 2.0, not {version}")
        raise asked.bad_flavor("hw:tpm_model", f"needs version 2.0, not {version}")
    return _TPM_MODELS[model], _TPM_VERSIONS[version]


def memory_encryption(asked: FlavorImage) -> str | None:
    """Return the model of memory encryption; None if none is asked for."""
    if not asked.agreed_flag("mem_encryption"):
        return None
    model = asked.agreed("mem_encryption_model", _MEMORY_ENCRYPTION) or "amd-sev"
    properties = asked.properties
    if properties.get("hw_firmware_type") != "uefi":
        raise asked.bad_image("hw_firmware_type", "must be uefi for memory encryption")
    if "q35" not in properties.get("hw_machine_type", "q35"):
        raise asked.bad_image("hw_machine_type", "must be a q35 for memory encryption")
    if model in ("amd-sev-snp", "intel-tdx") and not _stateless_firmware(asked):
        raise asked.bad_image("hw_firmware_stateless", f"must be true for memory encryption by {model}")
    if model == "intel-tdx" and properties.get("hw_video_model") != "none":
        raise asked.bad_image("hw_video_model", f"must be none for memory encryption by {model}")
    return model


def _stateless_firmware(asked: FlavorImage) -> bool:
    """Return whether UEFI firmware without a variable store is asked for; other firmware ignores it."""
    properties = asked.properties
    return properties.get("hw_firmware_type") == "uefi" and is_true(
        properties.get("hw_firmware_stateless", "")
    )


def _namespace(label: str) -> str:
    """Return the resource class of persistent memory namespaces with a label."""
    return "CUSTOM_PMEM_NAMESPACE_" + re.sub("[^0-9A-Za-z]+", "_", label).upper()
