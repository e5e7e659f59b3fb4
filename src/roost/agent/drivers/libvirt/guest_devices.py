"""The interfaces of a domain and the devices of its accelerators.

Source: ``<interface>`` of libvirt's domain format, and ``nova/virt/libvirt/vif.py`` for the interface of each
vif_type.
"""

from collections.abc import Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement

from roost.agent.drivers import Attached, AttachedDevice, AttachedPort
from roost.agent.drivers.libvirt.node_devices import address_text
from roost.agent.errors import BuildFailed

NOT_PLUGGED: Final = "NotPlugged"
"""The code of builds with a port or an accelerator that this driver does not plug in. Another driver may."""

_ELSEWHERE: Final = ("other", "hostdev_physical")
"""Kinds of ports without an interface: another program plugs them in, or the guest has the whole device."""
_ON_FUNCTION: Final = "hw_veb"
"""The kind of ports on a virtual function whose address and VLAN the host sets."""
_HANDLE: Final = ("domain", "bus", "device", "function")
_NAME: Final = 14
"""Length of the names of network devices that Neutron's agents look for, in characters."""


def write_interfaces(devices: Element, attached: Attached, model: str) -> None:
    """Write an interface for each port that has one. Raises `BuildFailed`."""
    for port in attached.ports:
        if port.kind in _ELSEWHERE:
            continue
        if port.kind == _ON_FUNCTION:
            _on_function(devices, port)
        else:
            _on_bridge(devices, port, model)


def function_addresses(attached: Attached) -> frozenset[str]:
    """Return the PCI addresses that the guest gets as interfaces."""
    found = (port.address for port in attached.ports if port.kind == _ON_FUNCTION)
    return frozenset(address for address in found if address is not None)


def accelerator_addresses(attached: Attached) -> list[str]:
    """Return the PCI addresses of a guest's accelerators. Raises `BuildFailed`."""
    return [_address_of(device) for device in attached.devices]


def _on_bridge(devices: Element, port: AttachedPort, model: str) -> None:
    if port.kind == "ovs":
        if port.details.get("ovs_hybrid_plug"):
            raise _refused(port, "with a bridge of its own for iptables (ovs_hybrid_plug)")
        bridge = _detail(port.details, "bridge_name") or "br-int"
    elif port.kind == "bridge":
        bridge = _detail(port.details, "bridge_name") or f"brq{port.network_id}"[:_NAME]
    else:
        raise _refused(port, "at all")
    interface = SubElement(devices, "interface", type="bridge")
    SubElement(interface, "mac", address=port.mac)
    SubElement(interface, "source", bridge=bridge)
    if port.kind == "ovs":
        virtual = SubElement(interface, "virtualport", type="openvswitch")
        SubElement(virtual, "parameters", interfaceid=port.id)
    SubElement(interface, "target", dev=f"tap{port.id}"[:_NAME])
    SubElement(interface, "model", type=model)


def _on_function(devices: Element, port: AttachedPort) -> None:
    if port.address is None:
        raise _refused(port, "without a PCI device in the claim")
    interface = SubElement(devices, "interface", type="hostdev", managed="yes")
    SubElement(interface, "mac", address=port.mac)
    pci_address(SubElement(interface, "source"), port.address, type="pci")
    vlan = _detail(port.details, "vlan")
    if vlan and vlan != "0":
        SubElement(SubElement(interface, "vlan"), "tag", id=vlan)


def pci_address(parent: Element, address: str, **attributes: str) -> None:
    """Write the PCI address ``0000:81:00.0`` of a device."""
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    named = {"domain": domain, "bus": bus, "slot": slot, "function": function}
    SubElement(parent, "address", {**attributes, **{key: f"0x{each}" for key, each in named.items()}})


def _detail(details: Mapping[str, Any], name: str) -> str:
    value = details.get(name)
    return "" if value is None else str(value)


def _address_of(device: AttachedDevice) -> str:
    if device.kind == "PCI":
        try:
            return address_text(*(int(device.handle[part], 16) for part in _HANDLE))
        except (KeyError, ValueError) as error:
            text = f"accelerator {device.id} has no PCI address: {error}"
            raise BuildFailed(text, NOT_PLUGGED) from error
    raise BuildFailed(f"this driver does not plug in accelerators of the kind {device.kind}", NOT_PLUGGED)


def _refused(port: AttachedPort, how: str) -> BuildFailed:
    text = f"this driver does not plug in port {port.id} of the kind {port.kind} {how}"
    return BuildFailed(text, NOT_PLUGGED)
