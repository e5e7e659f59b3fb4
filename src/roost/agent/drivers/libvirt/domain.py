"""The XML of an instance's domain: a pure function of its request, its claim and its assignment."""

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import msgspec

from roost.agent.drivers import Attached, assignment_of
from roost.agent.drivers.libvirt.domain_capabilities import SEV_ES, DomainCapabilities
from roost.agent.drivers.libvirt.guest_devices import (
    accelerator_addresses,
    function_addresses,
    pci_address,
    write_interfaces,
)
from roost.agent.drivers.libvirt.guest_placement import GuestPlacement, placement_of
from roost.agent.drivers.libvirt.guests import guest_metadata
from roost.agent.drivers.libvirt.traits import QEMU
from roost.agent.errors import BuildFailed
from roost.model.instance import Instance
from roost.model.spec import Flavor, RequestSpec

UNSUPPORTED: Final = "UnsupportedGuest"
"""The code of builds whose guest this host cannot run."""

_NAMESPACE: Final = uuid.UUID("3d0f3f3e-3a55-4b62-8f8b-6f3c2f5b9a10")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SEV_POLICY: Final = {False: 0x03, True: 0x07}
"""Bits of the SEV policy: no debugging, no sharing of keys; with SEV-ES also encrypted registers."""


class GuestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all guests of a host.

    ``shared_cpus``: the CPUs over which vCPUs without an assignment float; None: all of the host.
    ``base_page_kb``: the size of the smallest pages.
    """

    machine: str | None = None
    cpu_mode: str | None = None
    shared_cpus: frozenset[int] | None = None
    base_page_kb: int = 4


class GuestParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts made for a guest: its disk and its format, its serial console's file, its mediated devices.

    ``encryption``: the kind of its memory encryption. ``attached``: its ports and accelerators.
    """

    disk: Path | None = None
    disk_format: str = "qcow2"
    console: Path | None = None
    mdevs: tuple[str, ...] = ()
    encryption: str | None = None
    attached: Attached = Attached()


def domain_name(instance: str) -> str:
    """Return the name of an instance's domain and folder. Raises `BuildFailed` for an unusable uuid."""
    if not _NAME.fullmatch(instance):
        raise BuildFailed(f"instance {instance!r} cannot name a domain", UNSUPPORTED, retryable=False)
    return f"roost-{instance}"


def domain_uuid(instance: str) -> str:
    """Return the uuid of an instance's domain: the instance's id if that is a uuid."""
    try:
        return str(uuid.UUID(instance))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, instance))


def mdev_uuid(instance: Instance, device: str, number: int) -> str:
    """Return the uuid of an attempt's mediated device of a physical device."""
    return str(uuid.uuid5(_NAMESPACE, f"{instance.uuid}/{instance.attempt}/{device}/{number}"))


def domain_xml(
    instance: Instance,
    guests: DomainCapabilities,
    options: GuestOptions,
    parts: GuestParts,
    shared_of_cell: Mapping[int, frozenset[int]] | None = None,
) -> str:
    """Return the XML of an instance's domain. ``shared_of_cell``: the shared CPUs of each host cell.

    Raises:
        BuildFailed: the host does not support a requested property of the guest.
    """
    spec = instance.spec
    if spec is None:
        raise BuildFailed("the instance has no flavor: it was stored by an earlier version", UNSUPPORTED)
    flavor, properties = spec.flavor, spec.image_properties
    domain = Element("domain", type=guests.domain_type)
    _text(domain, "name", domain_name(instance.uuid))
    _text(domain, "uuid", domain_uuid(instance.uuid))
    SubElement(domain, "metadata").append(guest_metadata(instance, assignment_of(instance)))
    _text(domain, "memory", str(flavor.memory_mb), unit="MiB")
    placement = placement_of(flavor, assignment_of(instance), shared_of_cell or {}, options.base_page_kb)
    placement.write_backing(domain, locked=parts.encryption is not None)
    vcpu = _text(domain, "vcpu", str(flavor.vcpus), placement="static")
    if placement.floats_freely and options.shared_cpus:
        vcpu.set("cpuset", ",".join(map(str, sorted(options.shared_cpus))))
    placement.write_tuning(domain)
    _system(domain, guests, options, _wanted_firmware(flavor, properties, parts))
    _cpu(domain, options, placement)
    _text(domain, "on_poweroff", "destroy")
    _text(domain, "on_reboot", "restart")
    _text(domain, "on_crash", "destroy")
    devices = SubElement(domain, "devices")
    _disk(devices, guests, properties, parts)
    write_interfaces(devices, parts.attached, properties.get("hw_vif_model", "virtio"))
    if parts.console is not None and guests.domain_type in QEMU:
        serial = SubElement(devices, "serial", type="file")
        SubElement(serial, "source", path=str(parts.console))
    _video(devices, guests, properties)
    _tpm(devices, guests, flavor, properties)
    _host_devices(devices, instance, parts)
    _encryption(domain, guests, parts)
    return ElementTree.tostring(domain, encoding="unicode")


def _text(parent: Element, tag: str, text: str, **attributes: str) -> Element:
    element = SubElement(parent, tag, attributes)
    element.text = text
    return element


def _check(able: bool, what: str) -> None:
    if not able:
        raise BuildFailed(f"the host cannot give the guest {what}", UNSUPPORTED)


def _wanted_firmware(flavor: Flavor, properties: Mapping[str, str], parts: GuestParts) -> tuple[bool, bool]:
    """Return whether a guest has UEFI, and whether it has secure boot."""
    asked = flavor.extra_specs.get("os:secure_boot") or properties.get("os_secure_boot")
    secure = asked == "required"
    uefi = secure or parts.encryption is not None or properties.get("hw_firmware_type") == "uefi"
    return uefi, secure


def stays_behind(spec: RequestSpec) -> None:
    """Refuse a guest that comes from another host and has state there beside its disk.

    Raises `BuildFailed`.
    """
    if _wanted_tpm(spec.flavor, spec.image_properties) is not None:
        raise BuildFailed(f"the guest has a TPM, {_STAYS}", UNSUPPORTED, retryable=False)
    if any(_wanted_firmware(spec.flavor, spec.image_properties, GuestParts())):
        raise BuildFailed(f"the guest has UEFI, {_STAYS}", UNSUPPORTED, retryable=False)


_STAYS = "whose variables stay on the host where it ran"


def _wanted_tpm(flavor: Flavor, properties: Mapping[str, str]) -> str | None:
    """Return the version of a guest's TPM; None: it has none."""
    return flavor.extra_specs.get("hw:tpm_version") or properties.get("hw_tpm_version")


def _system(
    domain: Element, guests: DomainCapabilities, options: GuestOptions, firmware: tuple[bool, bool]
) -> None:
    uefi, secure = firmware
    _check(not uefi or "efi" in guests.firmwares, "UEFI")
    _check(not secure or guests.secure_boot, "secure boot")
    system = SubElement(domain, "os")
    if uefi:
        system.set("firmware", "efi")
    kind = _text(system, "type", "hvm", arch=guests.arch)
    if machine := options.machine or guests.machine:
        kind.set("machine", machine)
    if secure:
        SubElement(system, "loader", secure="yes")
    SubElement(system, "boot", dev="hd")
    if guests.domain_type in QEMU:
        features = SubElement(domain, "features")
        SubElement(features, "acpi")
        if guests.arch in ("i686", "x86_64"):
            SubElement(features, "apic")
        if secure:
            SubElement(features, "smm", state="on")


def _cpu(domain: Element, options: GuestOptions, placement: GuestPlacement) -> None:
    if options.cpu_mode is None and not placement.cells:
        return
    cpu = SubElement(domain, "cpu")
    if options.cpu_mode is not None:
        cpu.set("mode", options.cpu_mode)
    placement.write_cells(cpu)


def _disk(
    devices: Element, guests: DomainCapabilities, properties: Mapping[str, str], parts: GuestParts
) -> None:
    if parts.disk is None:
        return
    bus = properties.get("hw_disk_bus", "virtio")
    _check(not guests.disk_buses or bus in guests.disk_buses, f"a disk on the bus {bus}")
    disk = SubElement(devices, "disk", type="file", device="disk")
    SubElement(disk, "driver", name="qemu", type=parts.disk_format)
    SubElement(disk, "source", file=str(parts.disk))
    prefix = {"virtio": "vd", "ide": "hd", "fdc": "fd"}.get(bus, "sd")
    SubElement(disk, "target", dev=f"{prefix}a", bus=bus)


def _video(devices: Element, guests: DomainCapabilities, properties: Mapping[str, str]) -> None:
    if (model := properties.get("hw_video_model")) is not None:
        _check(model in guests.video_models, f"the graphics model {model}")
        SubElement(SubElement(devices, "video"), "model", type=model)


def _tpm(devices: Element, guests: DomainCapabilities, flavor: Flavor, properties: Mapping[str, str]) -> None:
    version = _wanted_tpm(flavor, properties)
    if version is None:
        return
    model = flavor.extra_specs.get("hw:tpm_model") or properties.get("hw_tpm_model") or "tpm-tis"
    _check(version in guests.tpm_versions and model in guests.tpm_models, f"a TPM {version} as {model}")
    tpm = SubElement(devices, "tpm", model=model)
    SubElement(tpm, "backend", type="emulator", version=version)


def _host_devices(devices: Element, instance: Instance, parts: GuestParts) -> None:
    assignment = assignment_of(instance)
    assigned = frozenset[str]() if assignment is None else assignment.addresses
    whole = assigned - function_addresses(parts.attached)
    for address in sorted({*whole, *accelerator_addresses(parts.attached)}):
        hostdev = SubElement(devices, "hostdev", mode="subsystem", type="pci", managed="yes")
        pci_address(SubElement(hostdev, "source"), address)
    for each in parts.mdevs:
        hostdev = SubElement(devices, "hostdev", mode="subsystem", type="mdev", model="vfio-pci")
        SubElement(SubElement(hostdev, "source"), "address", uuid=each)


def _encryption(domain: Element, guests: DomainCapabilities, parts: GuestParts) -> None:
    if parts.encryption is None:
        return
    told = guests.memory_encryption
    if told is None or parts.encryption not in told.most_guests:
        raise BuildFailed(f"the host cannot encrypt memory by {parts.encryption}", UNSUPPORTED)
    security = SubElement(domain, "launchSecurity", type="sev")
    _text(security, "cbitpos", str(told.cbitpos))
    _text(security, "reducedPhysBits", str(told.reduced_phys_bits))
    _text(security, "policy", f"0x{_SEV_POLICY[parts.encryption == SEV_ES]:04x}")
