"""The extra specs that Nova and Roost know, beside those that filters and weighers declare.

Source: ``nova/api/validation/extra_specs`` for names and values, ``roost.scheduler.request.demand`` for the
keys that the scheduler reads.
"""

from typing import Final

from roost.scheduler.request.keys.key import ANY, NUMBER
from roost.scheduler.request.keys.known import (
    DRIVER,
    NOVA,
    NUMA_TREES,
    PCI_IN_PLACEMENT,
    SCHEDULER,
    TEXT,
    YES_OR_NO,
    KnownKey,
    extra_specs,
    like,
    one_of,
    whole_from,
)

_NUMA: Final = ("NUMATopologyFilter", NUMA_TREES)
_PCI: Final = ("PciPassthroughFilter", PCI_IN_PLACEMENT)
_LIBVIRT: Final = f"{NOVA}driver libvirt"
_VMWARE: Final = f"{NOVA}driver vmware"
_HYPERV: Final = f"{NOVA}former driver hyperv"
_POWERVM: Final = f"{NOVA}former driver powervm"
_IRONIC: Final = f"{NOVA}driver ironic"

_RANGE: Final = r"\s*\^?\s*\d+(\s*-\s*\d+)?\s*"
_CPU_SET: Final = like(rf"{_RANGE}(,{_RANGE})*,?", "a set of processors such as 0-3,^2")
_PAGE_SIZE: Final = like(
    r"large|small|any|\d*\.?\d+([KMGTPE]i?)?(b|bit|B)?", "a page size such as large or 2MB"
)
_ALIASES: Final = like(r"[^:,]+:\d+(,[^:,]+:\d+)*", "a list of alias:count")

_DISK_LIMITS: Final = tuple(
    f"disk_{way}_{unit}_sec" for way in ("read", "write", "total") for unit in ("bytes", "iops")
)
_QUOTAS: Final = (
    *(f"cpu_{each}" for each in ("quota", "shares", "period")),
    *(f"{each}{end}" for each in _DISK_LIMITS for end in ("", "_max", "_max_length")),
    *(f"vif_{way}_{what}" for way in ("inbound", "outbound") for what in ("average", "burst", "peak")),
)
_VMWARE_QUOTAS: Final = tuple(
    f"{kind}_{what}"
    for kind in ("cpu", "memory", "disk_io", "vif")
    for what in ("limit", "reservation", "shares_share")
)
_VMWARE_LEVELS: Final = tuple(f"{kind}_shares_level" for kind in ("cpu", "memory", "disk_io", "vif"))

FLAVOR_KEYS: Final[tuple[KnownKey, ...]] = (
    *extra_specs(SCHEDULER, "resources:", "trait:", parameter=ANY),
    *extra_specs(SCHEDULER, "resources", "trait", parameter="[a-zA-Z0-9_-]{1,64}:.+"),
    *extra_specs(SCHEDULER, "group_policy", form=one_of("isolate", "none")),
    *extra_specs(SCHEDULER, "accel:device_profile", form=TEXT),
    *extra_specs(SCHEDULER, "os:secure_boot", form=one_of("required", "optional", "disabled")),
    *extra_specs(_PCI, "pci_passthrough:alias", form=_ALIASES),
    *extra_specs(SCHEDULER, "hw:cpu_policy", form=one_of("dedicated", "shared", "mixed")),
    *extra_specs(SCHEDULER, "hw:cpu_thread_policy", form=one_of("prefer", "isolate", "require")),
    *extra_specs(SCHEDULER, "hw:emulator_threads_policy", form=one_of("isolate", "share")),
    *extra_specs(SCHEDULER, "hw:cpu_dedicated_mask", "hw:cpu_realtime_mask", form=_CPU_SET),
    *extra_specs(SCHEDULER, "hw:cpu_realtime", form=YES_OR_NO),
    *extra_specs(_NUMA, "hw:numa_nodes", form=whole_from(1)),
    *extra_specs(_NUMA, "hw:numa_cpus.", form=_CPU_SET, parameter=NUMBER),
    *extra_specs(_NUMA, "hw:numa_mem.", form=whole_from(1), parameter=NUMBER),
    *extra_specs(_NUMA, "hw:mem_page_size", form=_PAGE_SIZE),
    *extra_specs(_NUMA, "hw:locked_memory", form=YES_OR_NO),
    *extra_specs(
        SCHEDULER, "hw:pci_numa_affinity_policy", form=one_of("required", "preferred", "legacy", "socket")
    ),
    *extra_specs(SCHEDULER, "hw:mem_encryption", "hw:virtio_packed_ring", form=YES_OR_NO),
    *extra_specs(
        SCHEDULER,
        "hw:mem_encryption_model",
        form=one_of("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    ),
    *extra_specs(SCHEDULER, "hw:pmem", form=TEXT),
    *extra_specs((SCHEDULER, DRIVER), "hw:tpm_model", form=one_of("tpm-tis", "tpm-crb")),
    *extra_specs((SCHEDULER, DRIVER), "hw:tpm_version", form=one_of("1.2", "2.0")),
    *extra_specs(SCHEDULER, "hw:tpm_secret_security", form=one_of("user", "host", "deployment")),
    *extra_specs(SCHEDULER, "hw:maxphysaddr_mode", form=one_of("passthrough", "emulate")),
    *extra_specs("ComputeCapabilitiesFilter", "hw:maxphysaddr_bits", form=whole_from(0)),
    *extra_specs(SCHEDULER, "hw:ephemeral_encryption", form=YES_OR_NO),
    *extra_specs(SCHEDULER, "hw:ephemeral_encryption_format", form=one_of("luks", "plain")),
    *extra_specs(
        SCHEDULER,
        "hw:sound_model",
        form=one_of("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"),
    ),
    *extra_specs(_LIBVIRT, "boot_menu", "pmu", "vif_multiqueue_enabled", scope="hw:", form=YES_OR_NO),
    *extra_specs(_LIBVIRT, "hide_hypervisor_id", scope="hw:", form=YES_OR_NO),
    *extra_specs(_LIBVIRT, "hide_hypervisor_id", form=YES_OR_NO),
    *extra_specs(_LIBVIRT, "hw:serial_port_count", "hw:redirected_usb_ports", form=whole_from(0)),
    *extra_specs(
        _LIBVIRT, "hw:watchdog_action", form=one_of("none", "pause", "poweroff", "reset", "disabled")
    ),
    *extra_specs(_LIBVIRT, "hw:viommu_model", form=one_of("intel", "smmuv3", "virtio", "auto")),
    *extra_specs(_LIBVIRT, "hw:usb_model", "hw:input_bus", form=TEXT),
    *extra_specs(
        _LIBVIRT,
        *(f"cpu_{most}{what}" for most in ("", "max_") for what in ("sockets", "cores", "threads")),
        scope="hw:",
        form=whole_from(1),
    ),
    *extra_specs(_LIBVIRT, "hw_rng:allowed", form=YES_OR_NO),
    *extra_specs(_LIBVIRT, "hw_rng:rate_bytes", "hw_rng:rate_period", form=whole_from(0)),
    *extra_specs(_LIBVIRT, "hw_video:ram_max_mb", form=whole_from(0)),
    *extra_specs((_LIBVIRT, _VMWARE, _HYPERV), *_QUOTAS, scope="quota:", form=whole_from(0)),
    *extra_specs(_VMWARE, *_VMWARE_QUOTAS, scope="quota:", form=whole_from(0)),
    *extra_specs(_VMWARE, *_VMWARE_LEVELS, scope="quota:", form=one_of("custom", "high", "normal", "low")),
    *extra_specs(_VMWARE, "vmware:hw_version", "vmware:storage_policy", form=TEXT),
    *extra_specs(_HYPERV, "os:resolution", "os:monitors", "os:vram"),
    *extra_specs(
        _POWERVM,
        *("min_mem", "max_mem", "min_vcpu", "max_vcpu", "proc_units", "min_proc_units", "max_proc_units"),
        *(
            "dedicated_proc",
            "dedicated_sharing_mode",
            "shared_proc_pool_name",
            "uncapped",
            "processor_compatibility",
        ),
        *(
            "shared_weight",
            "availability_priority",
            "enable_lpar_metric",
            "proc_units_factor",
            "srr_capability",
        ),
        scope="powervm:",
    ),
    *extra_specs(_IRONIC, "baremetal:", parameter=ANY),
)
"""Extra specs with readers beside filters and weighers: names, readers, and the form of their values."""
