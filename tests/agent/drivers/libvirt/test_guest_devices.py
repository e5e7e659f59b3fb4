"""Ports and accelerators of a guest are in its domain, and what cannot be plugged in refuses the build."""

import asyncio
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from roost.agent.drivers import Attached, AttachedDevice, AttachedPort
from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.domain import GuestOptions, GuestParts, domain_xml
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.guests import read_domain
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.errors import BuildFailed
from roost.agent.neighbours.attaching_driver import AttachingDriver
from roost.model.assignment import AssignedDevices, Assignment
from roost.model.instance import Instance
from roost.model.spec import Flavor, Image
from support.libvirt_hosts import guests_of, instance_of, needs_libvirt

MAC = "fa:16:3e:00:00:01"
PORT = "6f1b7a52-95a1-4f0b-9d52-7e3f6b1b2c3d"
FUNCTION, CARD = "0000:3b:10.2", "0000:81:00.0"


def port(kind: str, address: str | None = None, **details: Any) -> AttachedPort:
    return AttachedPort(
        id=PORT, network_id="net-5678-1234", mac=MAC, kind=kind, details=details, address=address
    )


def built(*ports: AttachedPort, devices: tuple[AttachedDevice, ...] = (), of: Instance | None = None) -> str:
    instance = of or instance_of(flavor=Flavor("f", 1, 64))
    parts = GuestParts(attached=Attached(ports, devices))
    return domain_xml(instance, guests_of("skylake"), GuestOptions(), parts)


def only(text: str, path: str) -> Element:
    [found] = ElementTree.fromstring(text).findall(path)
    return found


def at(parent: Element, path: str) -> dict[str, str]:
    [found] = parent.findall(path)
    return found.attrib


def test_a_port_of_open_vswitch_is_known_to_its_agent_by_the_ports_id() -> None:
    interface = only(built(port("ovs")), "devices/interface")
    assert interface.attrib == {"type": "bridge"}
    assert at(interface, "mac") == {"address": MAC}
    assert at(interface, "source") == {"bridge": "br-int"}
    assert at(interface, "virtualport") == {"type": "openvswitch"}
    assert at(interface, "virtualport/parameters") == {"interfaceid": PORT}
    assert at(interface, "target") == {"dev": "tap6f1b7a52-95"}
    assert at(interface, "model") == {"type": "virtio"}
    other = only(built(port("ovs", bridge_name="br-x")), "devices/interface")
    assert at(other, "source") == {"bridge": "br-x"}


def test_a_port_of_a_linux_bridge_is_on_the_bridge_of_its_network() -> None:
    interface = only(built(port("bridge")), "devices/interface")
    assert (at(interface, "source"), interface.find("virtualport")) == ({"bridge": "brqnet-5678-12"}, None)


def test_an_image_names_the_model() -> None:
    image = Image(properties={"hw_vif_model": "e1000"})
    text = built(port("ovs"), of=instance_of(flavor=Flavor("f", 1, 64), image=image))
    assert at(only(text, "devices/interface"), "model") == {"type": "e1000"}


def test_ports_keep_the_order_of_the_request() -> None:
    text = built(port("ovs", bridge_name="one"), port("other"), port("bridge", bridge_name="two"))
    sources = ElementTree.fromstring(text).findall("devices/interface/source")
    assert [each.get("bridge") for each in sources] == ["one", "two"]


def test_a_virtual_function_has_the_ports_address_and_vlan_and_is_given_once() -> None:
    assigned = Assignment("node", (), (AssignedDevices(PORT, "pool", 1, (FUNCTION,)),))
    instance = instance_of(flavor=Flavor("f", 1, 64), assignment=assigned)
    text = built(port("hw_veb", FUNCTION, vlan="103"), of=instance)
    interface = only(text, "devices/interface")
    assert interface.attrib == {"type": "hostdev", "managed": "yes"}
    assert at(interface, "mac") == {"address": MAC}
    assert at(interface, "source/address") == {
        "type": "pci", "domain": "0x0000", "bus": "0x3b", "slot": "0x10", "function": "0x2"
    }  # fmt: skip
    assert at(interface, "vlan/tag") == {"id": "103"}
    assert ElementTree.fromstring(text).findall("devices/hostdev") == []
    # So nobody else gets it.
    assert read_domain(text, active=True).addresses == {FUNCTION}
    # The whole card has no interface of libvirt's.
    whole = built(port("hostdev_physical", FUNCTION), of=instance)
    assert ElementTree.fromstring(whole).findall("devices/interface") == []
    assert read_domain(whole, active=True).addresses == {FUNCTION}


def test_an_accelerator_is_given_by_the_address_that_its_service_tells() -> None:
    handle = {"domain": "0000", "bus": "81", "device": "00", "function": "0"}
    text = built(devices=(AttachedDevice("arq", "PCI", handle),))
    assert read_domain(text, active=True).addresses == {CARD}


@pytest.mark.parametrize(
    ("attached", "text"),
    [
        (Attached((port("vhostuser"),)), f"port {PORT} of the kind vhostuser at all"),
        (Attached((port("ovs", ovs_hybrid_plug=True),)), "ovs_hybrid_plug"),
        (Attached((port("hw_veb"),)), "without a PCI device in the claim"),
        (Attached((), (AttachedDevice("arq", "NUMBER"),)), "accelerators of the kind NUMBER"),
        (Attached((), (AttachedDevice("arq", "PCI", {"bus": "x"}),)), "accelerator arq has no PCI address"),
    ],
)
def test_what_cannot_be_plugged_in_refuses_the_build(attached: Attached, text: str) -> None:
    with pytest.raises(BuildFailed, match=text) as failed:
        built(*attached.ports, devices=attached.devices)
    assert (failed.value.code, failed.value.retryable) == ("NotPlugged", True)


class Network:
    """A service that binds each guest to one port."""

    traits = ()
    follows = False

    def serves(self, instance: Instance) -> bool:
        return True

    async def attach(self, instance: Instance, over: int | None = None) -> Attached:
        return Attached((port("bridge", bridge_name="br0"),))

    async def detach(self, instance: str, ports: str = "host") -> None:
        pass


def test_libvirt_takes_the_domain_of_a_guest_with_a_port(tmp_path: Path) -> None:
    needs_libvirt()

    async def run() -> None:
        connection = LibvirtConnection("test:///default", 20.0)
        driver = LibvirtDriver("a", DriverOptions(disks=DiskOptions(tmp_path)), connection)
        await driver.recover([])
        attaching = AttachingDriver(driver, (Network(),), tmp_path)
        await attaching.prepare(instance := instance_of(flavor=Flavor("f", 1, 64)))
        await attaching.start(instance)
        text = connection.call_now(lambda opened: opened.lookupByName(f"roost-{instance.uuid}").XMLDesc())
        interface = only(text, "devices/interface")
        assert (at(interface, "mac"), at(interface, "source")) == ({"address": MAC}, {"bridge": "br0"})
        await attaching.destroy(instance.uuid)
        connection.close()

    asyncio.run(run())
