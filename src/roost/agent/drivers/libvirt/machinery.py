"""Operations on domains and mediated devices over an open connection. All of them are idempotent."""

from collections.abc import Collection
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.guests import Domain, read_domain
from roost.agent.drivers.libvirt.node_devices import read_node_devices
from roost.agent.errors import NoSuchGuest


class ForeignDomain(Exception):
    """A foreign domain has the name of one of ours, and is left alone; the text is the name."""


def define(connection: LibvirtConnection, opened: Any, name: str, text: str) -> None:
    """Define a domain, or replace its definition. Raises `ForeignDomain`, libvirt's error."""
    if (there := find(connection, opened, name)) is not None and there.own is None:
        raise ForeignDomain(name)
    opened.defineXML(text)


def start(connection: LibvirtConnection, opened: Any, name: str) -> None:
    """Start a domain unless it runs. Raises libvirt's error."""
    domain = opened.lookupByName(name)
    if not domain.isActive():
        domain.create()


def stop(connection: LibvirtConnection, opened: Any, name: str) -> None:
    """Power off a domain of ours, if it runs. Its definition, disk and devices stay.

    Raises `NoSuchGuest`, libvirt's error.
    """
    there = find(connection, opened, name)
    if there is None or there.own is None:
        raise NoSuchGuest(f"the host has no domain {name} of its own")
    if there.active:
        opened.lookupByName(name).destroy()


def start_again(connection: LibvirtConnection, opened: Any, name: str, attempt: int) -> None:
    """Start the domain of an attempt, unless it runs. Raises `NoSuchGuest`, libvirt's error."""
    there = find(connection, opened, name)
    if there is None or there.own is None or there.own.attempt != attempt:
        raise NoSuchGuest(f"the host has no domain {name} of attempt {attempt}")
    start(connection, opened, name)


def find(connection: LibvirtConnection, opened: Any, name: str) -> Domain | None:
    """Return a domain by its name; None if it does not exist. Raises libvirt's error."""
    domain = connection.unless_gone(lambda: opened.lookupByName(name))
    text = None if domain is None else connection.unless_gone(domain.XMLDesc)
    if domain is None or text is None:
        return None
    return read_domain(text, bool(connection.unless_gone(domain.isActive)))


def remove(connection: LibvirtConnection, opened: Any, name: str) -> None:
    """Destroy and undefine a domain of ours, and remove its mediated devices.

    A missing domain is no error; a foreign one is left alone. Raises libvirt's error.
    """
    there = find(connection, opened, name)
    if there is None or there.own is None:
        return
    domain = opened.lookupByName(name)
    if there.active:
        connection.unless_gone(domain.destroy)
    remove_mdevs(connection, opened, there.mdevs)
    flags = connection.constant("VIR_DOMAIN_UNDEFINE_MANAGED_SAVE")
    if there.has_nvram:
        flags |= connection.constant("VIR_DOMAIN_UNDEFINE_NVRAM")
    connection.unless_gone(lambda: domain.undefineFlags(flags))


def make_mdev(opened: Any, parent: str, kind: str, uuid: str) -> None:
    """Make a mediated device of a physical one, unless it exists. Raises libvirt's error."""
    if uuid in _mdevs(opened):
        return
    device = Element("device")
    SubElement(device, "parent").text = parent
    capability = SubElement(device, "capability", type="mdev")
    SubElement(capability, "type", id=kind)
    SubElement(capability, "uuid").text = uuid
    opened.nodeDeviceCreateXML(ElementTree.tostring(device, encoding="unicode"))


def remove_mdevs(connection: LibvirtConnection, opened: Any, uuids: Collection[str]) -> None:
    """Remove mediated devices; missing ones are no error. Raises libvirt's error."""
    if not uuids:
        return
    there = _mdevs(opened)
    for uuid in uuids:
        if (device := there.get(uuid)) is not None:
            connection.unless_gone(device.destroy)


def _mdevs(opened: Any) -> dict[str, Any]:
    devices = {each.XMLDesc(): each for each in opened.listAllDevices()}
    found = {}
    for text, device in devices.items():
        for mediated in read_node_devices([text]).mediated:
            found[mediated.uuid] = device
    return found
