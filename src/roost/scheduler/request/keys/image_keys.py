"""The properties of images that Nova and Roost know, beside those that filters and weighers declare.

Source: the fields of ``nova.objects.ImageMetaProps``, and the properties that Glance and its clients write.
"""

from typing import Final

from roost.scheduler.request.keys.key import ANY, NUMBER
from roost.scheduler.request.keys.known import (
    DRIVER,
    IMAGE_PREFILTER,
    NOVA,
    NUMA_TREES,
    SCHEDULER,
    KnownKey,
    image_properties,
)

_NUMA: Final = ("NUMATopologyFilter", NUMA_TREES)
_DRIVERS: Final = f"{NOVA}drivers"
_GLANCE: Final = f"{NOVA}neighbour Glance"

IMAGE_KEYS: Final[tuple[KnownKey, ...]] = (
    *image_properties(SCHEDULER, "trait:", parameter=ANY),
    *image_properties(
        SCHEDULER,
        *("cpu_policy", "cpu_thread_policy", "cpu_realtime_mask", "pci_numa_affinity_policy"),
        *("mem_encryption", "mem_encryption_model", "virtio_packed_ring", "tpm_model", "tpm_version"),
        *("maxphysaddr_mode", "ephemeral_encryption", "ephemeral_encryption_format", "sound_model"),
        *("firmware_stateless", "machine_type"),
        scope="hw_",
    ),
    *image_properties((SCHEDULER, DRIVER), "hw_firmware_type", "os_secure_boot", "hw_tpm_version"),
    *image_properties(_NUMA, "hw_numa_nodes", "hw_mem_page_size", "hw_locked_memory"),
    *image_properties(_NUMA, "hw_numa_cpus.", "hw_numa_mem.", parameter=NUMBER),
    *image_properties((DRIVER, IMAGE_PREFILTER), "hw_disk_bus", "hw_video_model", "hw_vif_model"),
    *image_properties(
        IMAGE_PREFILTER, "hw_cdrom_bus", "hw_architecture", "hw_emulation_architecture", "hw_viommu_model"
    ),
    *image_properties(
        _DRIVERS,
        *(
            "auto_disk_config",
            "boot_menu",
            "cpu_cores",
            "cpu_max_cores",
            "cpu_max_sockets",
            "cpu_max_threads",
        ),
        *("cpu_sockets", "cpu_threads", "device_id", "disk_type", "ephemeral_encryption_secret_uuid"),
        *("floppy_bus", "input_bus", "ipxe_boot", "pmu", "pointer_model", "qemu_guest_agent", "rescue_bus"),
        *("redirected_usb_ports", "rescue_device", "rng_model", "scsi_model", "serial_port_count"),
        *("time_hpet", "usb_model", "vif_multiqueue_enabled", "video_ram", "watchdog_action"),
        scope="hw_",
    ),
    *image_properties(
        _DRIVERS,
        *("bdm_v2", "bittorrent", "block_device_mapping", "cache_in_nova", "compression_level"),
        *("config_drive", "hide_hypervisor_id", "linked_clone", "mappings", "owner_id", "root_device_name"),
        *("signature", "signature_certificate_uuid", "signature_hash_method", "signature_key_type"),
        *("use_agent", "version"),
        scope="img_",
    ),
    *image_properties(
        _DRIVERS,
        *("admin_user", "command_line", "require_quiesce", "skip_agent_inject_files_at_boot"),
        *("skip_agent_inject_ssh", "type"),
        scope="os_",
    ),
    *image_properties(
        _GLANCE,
        *("os_distro", "os_version", "os_hidden", "os_hash_algo", "os_hash_value"),
        *("base_image_ref", "boot_roles", "image_location", "image_state", "image_type", "instance_uuid"),
        *("kernel_id", "ramdisk_id", "user_id", "owner_project_name", "owner_user_name", "stores"),
        *("cinder_encryption_key_id", "cinder_encryption_key_deletion_policy", "direct_url", "locations"),
    ),
    *image_properties(_GLANCE, "owner_specified.", "os_glance_", parameter=ANY),
)
"""Properties with readers beside filters and weighers: names and all readers."""
