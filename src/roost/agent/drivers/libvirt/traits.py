"""The traits of a host: of its CPU, and of the guests that it can run.

Only capabilities that the driver itself gives to guests have traits: volumes, which a hypervisor could
attach, have none.
"""

from collections.abc import Iterable
from typing import Final

import os_traits

from roost.agent.drivers.libvirt.domain_capabilities import DomainCapabilities
from roost.agent.drivers.libvirt.host_capabilities import HostCapabilities

_STANDARD: Final = frozenset(os_traits.get_traits())
_X86: Final = "HW_CPU_X86_"
_ARCHITECTURES: Final = {"i686": "X86", "x86_64": "X86", "aarch64": "AARCH64"}

_CPU_FLAGS: Final = {
    "3dnow": ("HW_CPU_X86_3DNOW",),
    "abm": ("HW_CPU_X86_ABM",),
    "aes": ("HW_CPU_X86_AESNI",),
    "amd-no-ssb": ("HW_CPU_X86_AMD_NO_SSB",),
    "amd-ssbd": ("HW_CPU_X86_AMD_SSBD",),
    "avx512vnni": ("HW_CPU_X86_AVX512VNNI",),
    "bmi1": ("HW_CPU_X86_BMI",),
    "fma": ("HW_CPU_X86_FMA3",),
    "gfni": ("HW_CPU_X86_AVX512GFNI",),
    "ibpb": ("HW_CPU_X86_AMD_IBPB",),
    "md-clear": ("HW_CPU_X86_INTEL_MD_CLEAR",),
    "pcid": ("HW_CPU_X86_INTEL_PCID",),
    "pclmuldq": ("HW_CPU_X86_CLMUL",),
    "pclmulqdq": ("HW_CPU_X86_CLMUL",),
    "pni": ("HW_CPU_X86_SSE3",),
    "rtm": ("HW_CPU_X86_TSX",),
    "sha-ni": ("HW_CPU_X86_SHA",),
    "spec-ctrl": ("HW_CPU_X86_INTEL_SPEC_CTRL",),
    "ssbd": ("HW_CPU_X86_INTEL_SSBD",),
    "svm": ("HW_CPU_X86_SVM", "HW_CPU_X86_AMD_SVM"),
    "vaes": ("HW_CPU_X86_AVX512VAES",),
    "virt-ssbd": ("HW_CPU_X86_AMD_VIRT_SSBD",),
    "vmx": ("HW_CPU_X86_VMX", "HW_CPU_X86_INTEL_VMX"),
    "vpclmulqdq": ("HW_CPU_X86_AVX512VPCLMULQDQ",),
}
"""The traits of CPU flags whose names differ from the traits'."""

_SEVERAL_NAMES: Final = str.maketrans("", "", "-_.")

_VIFS: Final = {
    "x86_64": ("E1000", "E1000E", "IGB", "NE2K_PCI", "PCNET", "RTL8139", "VIRTIO"),
    "i686": ("E1000", "E1000E", "NE2K_PCI", "PCNET", "RTL8139", "VIRTIO"),
    "aarch64": ("E1000", "E1000E", "VIRTIO"),
}
"""Models of QEMU's network cards, which no capabilities report. Source: QEMU's list of devices."""

QEMU: Final = frozenset({"qemu", "kvm"})
"""The domain types that QEMU runs."""


def host_traits(
    host: HostCapabilities, guests: DomainCapabilities, features: Iterable[str], *, with_images: bool
) -> frozenset[str]:
    """Return the traits of a host's root provider.

    ``features``: the flags of the CPU that guests get. ``with_images``: disks are made from images.
    """
    found = {f"HW_ARCH_{host.arch.upper()}"}
    found |= {f"COMPUTE_ARCH_{kind.arch.upper()}" for kind in host.guests}
    found |= cpu_traits(host.arch, features)
    found |= {f"COMPUTE_STORAGE_BUS_{bus.upper()}" for bus in guests.disk_buses}
    found |= {f"COMPUTE_GRAPHICS_MODEL_{model.upper()}" for model in guests.video_models}
    found |= _firmware(guests)
    found |= {f"COMPUTE_SECURITY_TPM_{version.replace('.', '_')}" for version in guests.tpm_versions}
    found |= {f"COMPUTE_SECURITY_{model.upper().replace('-', '_')}" for model in guests.tpm_models}
    if guests.domain_type in QEMU:
        found |= {f"COMPUTE_NET_VIF_MODEL_{model}" for model in _VIFS.get(guests.arch, ("VIRTIO",))}
    if with_images:
        found |= {"COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_IMAGE_TYPE_QCOW2"}
    cpus = [cpu for cell in host.cells for cpu in cell.cpus]
    if any(len(cpu.siblings) > 1 for cpu in cpus):
        found.add("HW_CPU_HYPERTHREADING")
    if any(cpu.socket is not None for cpu in cpus):
        found.add("COMPUTE_SOCKET_PCI_NUMA_AFFINITY")
    return frozenset(found & _STANDARD)


def cpu_traits(arch: str, features: Iterable[str]) -> set[str]:
    """Return the traits of a CPU's flags, which have libvirt's names."""
    family = f"HW_CPU_{_ARCHITECTURES.get(arch, arch.upper())}_"
    by_name = {
        trait.removeprefix(family).translate(_SEVERAL_NAMES): trait
        for trait in _STANDARD
        if trait.startswith(family)
    }
    found: set[str] = set()
    for feature in features:
        if family == _X86 and feature in _CPU_FLAGS:
            found.update(_CPU_FLAGS[feature])
        elif trait := by_name.get(feature.upper().translate(_SEVERAL_NAMES)):
            found.add(trait)
    return found


def _firmware(guests: DomainCapabilities) -> set[str]:
    found = {"COMPUTE_FIRMWARE_UEFI"} if "efi" in guests.firmwares else set()
    if guests.domain_type in QEMU and guests.arch in ("i686", "x86_64"):
        # Without a configured firmware QEMU boots with its BIOS.
        found.add("COMPUTE_FIRMWARE_BIOS")
    if guests.secure_boot:
        found.add("COMPUTE_SECURITY_UEFI_SECURE_BOOT")
    return found
