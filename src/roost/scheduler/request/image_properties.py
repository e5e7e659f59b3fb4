"""Properties of images under the names that Nova uses today, and with values spelled as Nova spells them.

Source: ``nova.objects.image_meta.ImageMetaProps``.
"""

from collections.abc import Mapping
from typing import Final

TRAIT: Final = "trait:"
"""The prefix of properties that require or forbid a trait."""

_ADAPTER = "vmware_adaptertype"
"""An earlier name of two properties: ``hw_disk_bus`` and ``hw_scsi_model``."""

CURRENT_NAMES: Final[Mapping[str, str]] = {
    "architecture": "hw_architecture",
    "auto_disk_config": "hw_auto_disk_config",
    "bdm_v2": "img_bdm_v2",
    "bittorrent": "img_bittorrent",
    "block_device_mapping": "img_block_device_mapping",
    "cache_in_nova": "img_cache_in_nova",
    "hypervisor_type": "img_hv_type",
    "hypervisor_version_requires": "img_hv_requested_version",
    "ipxe_boot": "hw_ipxe_boot",
    "mappings": "img_mappings",
    "owner_id": "img_owner_id",
    "root_device_name": "img_root_device_name",
    "vm_mode": "hw_vm_mode",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_linked_clone": "img_linked_clone",
    "vmware_ostype": "os_distro",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_use_agent": "img_use_agent",
}
"""Earlier name -> current name."""

FLAGS: Final = frozenset(
    (
        "hw_boot_menu",
        "hw_ephemeral_encryption",
        "hw_firmware_stateless",
        "hw_ipxe_boot",
        "hw_locked_memory",
        "hw_mem_encryption",
        "hw_pmu",
        "hw_qemu_guest_agent",
        "hw_time_hpet",
        "hw_vif_multiqueue_enabled",
        "hw_virtio_packed_ring",
        "img_bdm_v2",
        "img_bittorrent",
        "img_cache_in_nova",
        "img_hide_hypervisor_id",
        "img_linked_clone",
        "img_use_agent",
        "os_require_quiesce",
        "os_skip_agent_inject_files_at_boot",
        "os_skip_agent_inject_ssh",
    )
)
"""Properties that say yes or no. They are spelled ``True`` and ``False``."""

NUMBERS: Final = frozenset(
    (
        "hw_cpu_cores",
        "hw_cpu_max_cores",
        "hw_cpu_max_sockets",
        "hw_cpu_max_threads",
        "hw_cpu_sockets",
        "hw_cpu_threads",
        "hw_device_id",
        "hw_maxphysaddr_bits",
        "hw_numa_nodes",
        "hw_redirected_usb_ports",
        "hw_serial_port_count",
        "hw_video_ram",
        "img_compression_level",
        "img_version",
    )
)
"""Properties that are whole numbers."""

_ARCHITECTURES = {
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86_32": "i686",
    "x86_32p": "i686",
    "amd64": "x86_64",
}

_SPELLINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "hw_architecture": _ARCHITECTURES,
    "hw_emulation_architecture": _ARCHITECTURES,
    "hw_scsi_model": {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"},
    "hw_vif_model": {
        "virtuale1000": "e1000",
        "virtuale1000e": "e1000e",
        "virtualpcnet32": "pcnet",
        "virtualsriovethernetcard": "sriov",
        "virtualvmxnet": "vmxnet",
        "virtualvmxnet3": "vmxnet3",
    },
    "hw_vm_mode": {"pv": "xen", "hv": "hvm", "baremetal": "hvm"},
    "img_hv_type": {"xapi": "xen"},
    "os_type": {},
}
"""Properties whose values are in lower case, and their other spellings."""

_TRUE = ("1", "t", "true", "on", "y", "yes")


def with_current_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties under their current names, with values spelled as `spelled` does.

    A property under its current name takes precedence over its earlier name. ``traits_required`` stands for
    all traits that the image requires.
    """
    found: dict[str, str] = {}
    traits: list[str] = []
    for name, value in properties.items():
        if name.startswith(TRAIT):
            if value == "required":
                traits.append(name.removeprefix(TRAIT))
        elif name in CURRENT_NAMES:
            found[CURRENT_NAMES[name]] = value
        elif name not in (_ADAPTER, "traits_required"):
            found.setdefault(name, value)
    if adapter := properties.get(_ADAPTER):
        found["hw_disk_bus"] = "ide" if adapter == "ide" else "scsi"
        if adapter != "ide":
            found["hw_scsi_model"] = adapter
    for name in found:
        found[name] = spelled(name, properties.get(name, found[name]))
    if traits:
        found["traits_required"] = str(traits)
    return found


def spelled(name: str, value: str) -> str:
    """Return the value of a property (by its current name) as Nova writes it: ``True`` for ``yes``,
    ``x86_64`` for ``AMD64``."""
    if name in FLAGS:
        return str(is_true(value))
    if name in NUMBERS:
        return _number(value)
    spellings = _SPELLINGS.get(name)
    return value if spellings is None else spellings.get(value.lower(), value.lower())


def says_something(name: str, value: str) -> bool:
    """Return whether a spelled value is anything but no, empty or zero."""
    return value != "" and (name, value) not in _NOTHING


_NOTHING = frozenset((*((name, "False") for name in FLAGS), *((name, "0") for name in NUMBERS)))


def _number(value: str) -> str:
    try:
        return str(int(value))
    except ValueError:
        # The reader that needs the number refuses the request.
        return value


def is_true(text: str) -> bool:
    """Return whether a text is one of the words that mean yes; all others mean no."""
    return text.strip().lower() in _TRUE
