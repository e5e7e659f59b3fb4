"""Hosts of several generations as libvirt describes them, in files of its documented form, and instances."""

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from roost.agent.drivers.libvirt.domain_capabilities import DomainCapabilities, read_domain_capabilities
from roost.agent.drivers.libvirt.host_capabilities import HostCapabilities, read_host_capabilities
from roost.agent.drivers.libvirt.node_devices import NodeDevices, read_node_devices
from roost.model.assignment import Assignment
from roost.model.instance import Instance
from roost.model.spec import Flavor, Image, RequestSpec
from support.cells import instance, selection

SMALL = Flavor("small", 1, 64)

_FOLDER = Path(__file__).parents[1] / "agent" / "drivers" / "libvirt" / "hosts"


def host_of(name: str) -> HostCapabilities:
    """The capabilities of a host."""
    return read_host_capabilities((_FOLDER / f"{name}-capabilities.xml").read_text())


def guests_of(name: str) -> DomainCapabilities:
    """What the guests of a host can be."""
    return read_domain_capabilities((_FOLDER / f"{name}-domain.xml").read_text())


def devices_of(name: str) -> NodeDevices:
    """The devices of a host."""
    root = ElementTree.fromstring((_FOLDER / f"{name}-devices.xml").read_text())
    return read_node_devices(ElementTree.tostring(each, encoding="unicode") for each in root)


def instance_of(
    uuid: str = "i",
    flavor: Flavor = SMALL,
    *,
    assignment: Assignment | None = None,
    allocations: dict[str, dict[str, int]] | None = None,
    image: Image | None = None,
    **others: object,
) -> Instance:
    """An instance with its flavor, image and claim."""
    chosen = msgspec.structs.replace(selection("a"), assignment=assignment, allocations=allocations or {})
    spec = RequestSpec(project_id="p", user_id="u", flavor=flavor, image=image)
    return instance(uuid, spec=spec, selection=chosen, flavor=flavor.name, **others)


def needs_libvirt() -> None:
    """Skip the test module where libvirt's bindings are not installed."""
    pytest.importorskip(
        "libvirt", exc_type=ImportError, reason="libvirt-python is not installed: make servers libvirt"
    )
