"""`LibvirtView`: a snapshot of a host at one moment, and the reading of it from the hypervisor."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.domain_capabilities import (
    DomainCapabilities,
    expanded_features,
    read_domain_capabilities,
)
from roost.agent.drivers.libvirt.guests import Domain, read_domain
from roost.agent.drivers.libvirt.host_capabilities import GuestKind, HostCapabilities, read_host_capabilities
from roost.agent.drivers.libvirt.node_devices import NodeDevices, read_node_devices
from roost.agent.errors import UnusableOptions

AUTO = "auto"
"""Default domain type: ``kvm`` if the host has it, else the first that it reports."""


class LibvirtView(NamedTuple):
    """A snapshot of a host. ``features``: CPU flags of its guests. ``memory_mb``: the host's memory."""

    host: HostCapabilities
    guests: DomainCapabilities
    features: frozenset[str]
    devices: NodeDevices
    memory_mb: int
    domains: Mapping[str, Domain]

    @property
    def others(self) -> list[Domain]:
        """The foreign guests that run on the host."""
        return [each for each in self.domains.values() if each.own is None and each.active]


def read_view(connection: LibvirtConnection, opened: Any, virt_type: str, machine: str | None) -> LibvirtView:
    """Read a host. Raises `UnreadableDescription`, `UnusableOptions`, libvirt's error."""
    host = read_host_capabilities(opened.getCapabilities())
    kind, domain_type = chosen_kind(host, virt_type)
    told = connection.unless_unsupported(
        lambda: opened.getDomainCapabilities(None, kind.arch, machine, domain_type)
    )
    guests = DomainCapabilities(domain_type, kind.arch) if told is None else read_domain_capabilities(told)
    devices = connection.unless_unsupported(lambda: [each.XMLDesc() for each in opened.listAllDevices()])
    return LibvirtView(
        host,
        guests,
        _features(connection, opened, host, guests),
        read_node_devices(devices or ()),
        opened.getInfo()[1],
        read_domains(connection, opened),
    )


def read_domains(connection: LibvirtConnection, opened: Any) -> dict[str, Domain]:
    """Return all domains by their names, also those that do not run. Raises libvirt's error."""
    found = {}
    for domain in opened.listAllDomains():
        # The domain may be gone meanwhile.
        text = connection.unless_gone(domain.XMLDesc)
        if text is not None:
            read = read_domain(text, bool(connection.unless_gone(domain.isActive)))
            found[read.name] = read
    return found


def chosen_kind(host: HostCapabilities, virt_type: str) -> tuple[GuestKind, str]:
    """Return the kind of guests of the host's architecture, and the domain type. Raises `UnusableOptions`."""
    kinds = [kind for kind in host.guests if kind.arch == host.arch and kind.os_type == "hvm"]
    if not kinds:
        raise UnusableOptions(f"the hypervisor runs no guests of the host's architecture {host.arch}")
    types = kinds[0].domain_types
    if virt_type == AUTO:
        return kinds[0], "kvm" if "kvm" in types else types[0]
    if virt_type not in types:
        raise UnusableOptions(f"virt_type is {virt_type}, the host has {', '.join(types)}")
    return kinds[0], virt_type


def _features(
    connection: LibvirtConnection, opened: Any, host: HostCapabilities, guests: DomainCapabilities
) -> frozenset[str]:
    """Return the CPU flags of guests, including those of the CPU model."""
    model = guests.host_model
    if model is None:
        return host.features
    flags = connection.constant("VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES")
    expanded = connection.unless_unsupported(
        lambda: opened.baselineHypervisorCPU(None, guests.arch, None, guests.domain_type, [model], flags)
    )
    return guests.features if expanded is None else expanded_features(expanded)
