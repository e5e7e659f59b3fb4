"""`PciDevice` and `MediatedDevice`: devices of a host for guests."""

from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from roost.agent.drivers.libvirt.elements import number, parsed, text_at, whole
from roost.fleet.hardware.pci_pools import TYPE_PCI, TYPE_PF, TYPE_VF


class MdevType(NamedTuple):
    """A type of mediated devices of a physical device, and the number that it can still make."""

    name: str
    available: int


class PciDevice(NamedTuple):
    """A PCI device. ``name``: libvirt's. The ids are four hexadecimal digits.

    ``parent``: the address of the physical function, of a virtual function.
    """

    name: str
    address: str
    vendor_id: str
    product_id: str
    dev_type: str
    numa_node: int | None
    parent: str | None
    mdev_types: tuple[MdevType, ...]


class MediatedDevice(NamedTuple):
    """A mediated device: its uuid, its type, and libvirt's name of its physical device."""

    uuid: str
    type: str
    parent: str


class NodeDevices(NamedTuple):
    """The devices of a host, sorted by address and by uuid."""

    pci: tuple[PciDevice, ...] = ()
    mediated: tuple[MediatedDevice, ...] = ()


def read_node_devices(texts: Iterable[str]) -> NodeDevices:
    """Read PCI and mediated devices from libvirt's XML; other devices are left out.

    Raises: `UnreadableDescription`.
    """
    pci: list[PciDevice] = []
    mediated: list[MediatedDevice] = []
    for text in texts:
        device = parsed(text, "device")
        name = text_at(device, "name") or ""
        if (capability := device.find("capability[@type='pci']")) is not None:
            pci.append(_pci(name, capability))
        elif (capability := device.find("capability[@type='mdev']")) is not None:
            kind = capability.find("type")
            uuid = text_at(capability, "uuid") or name.removeprefix("mdev_")[:36].replace("_", "-")
            parent = text_at(device, "parent") or ""
            mediated.append(MediatedDevice(uuid, "" if kind is None else kind.get("id", ""), parent))
    return NodeDevices(tuple(sorted(pci, key=lambda each: each.address)), tuple(sorted(mediated)))


def _pci(name: str, capability: Element) -> PciDevice:
    physical = capability.find("capability[@type='phys_function']/address")
    numa = capability.find("numa")
    functions = capability.find("capability[@type='virt_functions']")
    whole_device = TYPE_PCI if functions is None else TYPE_PF
    return PciDevice(
        name,
        _address([text_at(capability, part) or "0" for part in ("domain", "bus", "slot", "function")]),
        _id(capability.find("vendor")),
        _id(capability.find("product")),
        whole_device if physical is None else TYPE_VF,
        None if numa is None else number(numa, "node"),
        None if physical is None else address_in(physical),
        tuple(
            MdevType(each.get("id", ""), whole(text_at(each, "availableInstances") or "0", "instances"))
            for each in capability.findall("capability[@type='mdev_types']/type")
        ),
    )


def address_in(element: Element) -> str:
    """Return the PCI address in the attributes of an element: ``0000:3b:00.0``."""
    return _address([element.get(part, "0") for part in ("domain", "bus", "slot", "function")])


def _address(parts: list[str]) -> str:
    return address_text(*(whole(each, "a PCI address") for each in parts))


def address_text(domain: int, bus: int, slot: int, function: int) -> str:
    """Return a PCI address as text: ``0000:3b:00.0``."""
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _id(element: Element | None) -> str:
    text = None if element is None else element.get("id")
    return f"{whole(text or '0', 'a PCI id'):04x}"
