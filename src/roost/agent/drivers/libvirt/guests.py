"""`Domain`: a guest on a host, our own or a foreign one, and the metadata by which they are told apart."""

from typing import Final, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

from roost.agent.drivers.libvirt.elements import kib, parsed, range_set
from roost.agent.drivers.libvirt.node_devices import address_in
from roost.agent.errors import UnreadableDescription
from roost.model.assignment import Assignment
from roost.model.instance import Instance

NAMESPACE: Final = "urn:roost:instance:1"
"""The XML namespace of the driver's metadata."""

ElementTree.register_namespace("roost", NAMESPACE)


class OwnGuest(msgspec.Struct, frozen=True):
    """The instance of a domain, as its metadata name it."""

    instance: str
    attempt: int
    flavor: str
    assignment: Assignment | None = None


def guest_metadata(instance: Instance, assignment: Assignment | None) -> Element:
    """Return the element for the metadata of an instance's domain."""
    element = Element(f"{{{NAMESPACE}}}instance", uuid=instance.uuid, attempt=str(instance.attempt))
    element.set("flavor", instance.flavor)
    if assignment is not None:
        ElementTree.SubElement(element, f"{{{NAMESPACE}}}assignment").text = msgspec.json.encode(
            assignment
        ).decode()
    return element


def read_own_guest(domain: Element) -> OwnGuest | None:
    """Read the metadata of a domain; None for a foreign domain. Raises `UnreadableDescription`."""
    element = domain.find(f"metadata/{{{NAMESPACE}}}instance")
    if element is None:
        return None
    assigned = element.findtext(f"{{{NAMESPACE}}}assignment")
    try:
        return OwnGuest(
            element.attrib["uuid"],
            int(element.attrib["attempt"]),
            element.get("flavor", ""),
            None if assigned is None else msgspec.json.decode(assigned, type=Assignment),
        )
    except (KeyError, ValueError) as error:
        name = domain.findtext("name")
        raise UnreadableDescription(f"the metadata of domain {name} are not the driver's: {error}") from error


class Domain(NamedTuple):
    """A domain. ``own``: its instance; None for a foreign domain.

    ``pinned``: host CPUs that vCPUs are pinned to. ``addresses``: of its PCI devices. ``mdevs``: the uuids of
    its mediated devices. ``has_nvram``: it has variables of a firmware.
    """

    name: str
    active: bool
    own: OwnGuest | None
    memory_mb: int
    pinned: frozenset[int]
    addresses: frozenset[str]
    mdevs: frozenset[str]
    has_nvram: bool


_DEVICES: Final = {
    "pci": ("hostdev[@type='pci']", "interface[@type='hostdev']"),
    "mdev": ("hostdev[@type='mdev']",),
}
"""Paths of the host devices of a domain."""


def read_domain(text: str, active: bool) -> Domain:
    """Read a domain from its XML. Raises `UnreadableDescription`."""
    domain = parsed(text, "domain")
    memory = domain.find("memory")
    sources = {
        kind: [source for path in paths for source in domain.findall(f"devices/{path}/source/address")]
        for kind, paths in _DEVICES.items()
    }
    return Domain(
        domain.findtext("name") or "",
        active,
        read_own_guest(domain),
        0 if memory is None else kib(memory) // 1024,
        _pinned(domain),
        frozenset(map(address_in, sources["pci"])),
        frozenset(each.get("uuid", "") for each in sources["mdev"]),
        domain.find("os/nvram") is not None or domain.find("os[@firmware='efi']") is not None,
    )


def _pinned(domain: Element) -> frozenset[int]:
    try:
        sets = [range_set(each.get("cpuset", "")) for each in domain.findall("cputune/vcpupin")]
    except ValueError as error:
        raise UnreadableDescription(f"libvirt tells pinned CPUs that are none: {error}") from error
    return frozenset().union(*sets)
