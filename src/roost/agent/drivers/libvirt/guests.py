"""`Domain`: a guest on a host, our own or a foreign one."""

from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from roost.agent.drivers.libvirt import metadata
from roost.agent.drivers.libvirt.elements import kib, parsed, range_set
from roost.agent.drivers.libvirt.metadata import OwnGuest
from roost.agent.drivers.libvirt.node_devices import address_in
from roost.agent.errors import UnreadableDescription


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
        metadata.read(domain),
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
