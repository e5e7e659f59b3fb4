"""`DomainCapabilities`: capabilities of a hypervisor for guests of one domain type."""

from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.agent.drivers.libvirt.elements import enum, parsed, supported, text_at, whole

SEV = "sev"
SEV_ES = "sev-es"


class MemoryEncryption(NamedTuple):
    """AMD's encryption of guests' memory: the most guests at a time by its kind, and a domain's settings."""

    most_guests: dict[str, int]
    cbitpos: int
    reduced_phys_bits: int


class DomainCapabilities(NamedTuple):
    """One kind of guests: a domain type (``kvm``, ``qemu``) on an architecture and a machine type.

    ``host_model``: the CPU element of a guest with the host's CPU; None if that is not supported.
    ``tpm_models`` and ``tpm_versions``: those of emulated TPMs.
    """

    domain_type: str
    arch: str
    machine: str | None = None
    most_vcpus: int | None = None
    host_model: str | None = None
    features: frozenset[str] = frozenset()
    passthrough: bool = False
    firmwares: frozenset[str] = frozenset()
    secure_boot: bool = False
    disk_buses: frozenset[str] = frozenset()
    video_models: frozenset[str] = frozenset()
    graphics: frozenset[str] = frozenset()
    tpm_models: frozenset[str] = frozenset()
    tpm_versions: frozenset[str] = frozenset()
    memory_encryption: MemoryEncryption | None = None


def read_domain_capabilities(text: str) -> DomainCapabilities:
    """Read libvirt's XML of domain capabilities. Raises `UnreadableDescription`."""
    root = parsed(text, "domainCapabilities")
    system, devices = supported(root, "os"), root.find("devices")
    devices = Element("devices") if devices is None else devices
    loader = None if system is None else supported(system, "loader")
    firmwares = enum(system, "firmware")
    model = supported(root, "cpu/mode[@name='host-model']")
    vcpu = root.find("vcpu")
    tpm = supported(devices, "tpm")
    emulates_tpm = "emulator" in enum(tpm, "backendModel")
    return DomainCapabilities(
        domain_type=text_at(root, "domain") or "",
        arch=text_at(root, "arch") or "",
        machine=text_at(root, "machine"),
        most_vcpus=None if vcpu is None else whole(vcpu.get("max", ""), "the most vCPUs"),
        host_model=None if model is None else _cpu(root, model),
        features=frozenset() if model is None else _required(model),
        passthrough=supported(root, "cpu/mode[@name='host-passthrough']") is not None,
        firmwares=firmwares,
        secure_boot="efi" in firmwares and "yes" in enum(loader, "secure"),
        disk_buses=enum(supported(devices, "disk"), "bus"),
        video_models=enum(supported(devices, "video"), "modelType"),
        graphics=enum(supported(devices, "graphics"), "type"),
        tpm_models=enum(tpm, "model") if emulates_tpm else frozenset(),
        # libvirt before 8.6 does not report the versions: emulators of that time have version 2.0.
        tpm_versions=(enum(tpm, "backendVersion") or frozenset({"2.0"})) if emulates_tpm else frozenset(),
        memory_encryption=_encryption(root),
    )


def expanded_features(text: str) -> frozenset[str]:
    """Return the features of a CPU that libvirt has expanded. Raises `UnreadableDescription`."""
    return _required(parsed(text, "cpu"))


def _required(cpu: Element) -> frozenset[str]:
    return frozenset(
        each.get("name", "") for each in cpu.findall("feature") if each.get("policy", "require") == "require"
    ) - {""}


def _cpu(root: Element, mode: Element) -> str:
    """Return a CPU in the form that libvirt's functions for comparing CPUs take."""
    cpu = Element("cpu")
    arch = ElementTree.SubElement(cpu, "arch")
    arch.text = text_at(root, "arch")
    cpu.extend(mode)
    return ElementTree.tostring(cpu, encoding="unicode")


def _encryption(root: Element) -> MemoryEncryption | None:
    sev = supported(root, "features/sev")
    if sev is None:
        return None
    told = {kind: text_at(sev, name) for kind, name in ((SEV, "maxGuests"), (SEV_ES, "maxESGuests"))}
    guests = {kind: whole(text, f"the most guests with {kind}") for kind, text in told.items() if text}
    return MemoryEncryption(
        {kind: most for kind, most in guests.items() if most},
        whole(text_at(sev, "cbitpos") or "0", "cbitpos"),
        whole(text_at(sev, "reducedPhysBits") or "0", "reducedPhysBits"),
    )
