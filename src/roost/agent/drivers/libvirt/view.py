"""`HostView`: a host as its hypervisor told it at one moment, and the reading of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from roost.agent.drivers.libvirt.connection import Connection
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
"""The kind of domains: ``kvm`` where the host has it, else the first that it tells."""


class HostView(NamedTuple):
    """A host. ``features`` are the flags of the CPU that its guests get; ``memory_mb`` is what it has."""

    host: HostCapabilities
    guests: DomainCapabilities
    features: frozenset[str]
    devices: NodeDevices
    memory_mb: int
    domains: Mapping[str, Domain]

    @property
    def others(self) -> list[Domain]:
        """The guests that others run on the host."""
        return [each for each in self.domains.values() if each.own is None and each.active]


def read_view(connection: Connection, opened: Any, virt_type: str, machine: str | None) -> HostView:
    """Read a host. Raises `UnreadableDescription`, `UnusableOptions`, libvirt's error."""
    host = read_host_capabilities(opened.getCapabilities())
    kind, domain_type = chosen_kind(host, virt_type)
    told = connection.unless_unsupported(
        lambda: opened.getDomainCapabilities(None, kind.arch, machine, domain_type)
    )
    guests = DomainCapabilities(domain_type, kind.arch) if told is None else read_domain_capabilities(told)
    devices = connection.unless_unsupported(lambda: [each.XMLDesc() for each in opened.listAllDevices()])
    return HostView(
        host,
        guests,
        _features(connection, opened, host, guests),
        read_node_devices(devices or ()),
        opened.getInfo()[1],
        read_domains(connection, opened),
    )


def read_domains(connection: Connection, opened: Any) -> dict[str, Domain]:
    """All domains by their names, also those that do not run. Raises libvirt's error."""
    found = {}
    for domain in opened.listAllDomains():
        # It may be gone meanwhile.
        text = connection.unless_gone(domain.XMLDesc)
        if text is not None:
            read = read_domain(text, bool(connection.unless_gone(domain.isActive)))
            found[read.name] = read
    return found


def chosen_kind(host: HostCapabilities, virt_type: str) -> tuple[GuestKind, str]:
    """The architecture of guests, which is the host's, and their domain type. Raises `UnusableOptions`."""
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
    connection: Connection, opened: Any, host: HostCapabilities, guests: DomainCapabilities
) -> frozenset[str]:
    """The flags of the CPU that guests get, with those that its model stands for."""
    model = guests.host_model
    if model is None:
        return host.features
    flags = connection.constant("VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES")
    expanded = connection.unless_unsupported(
        lambda: opened.baselineHypervisorCPU(None, guests.arch, None, guests.domain_type, [model], flags)
    )
    return guests.features if expanded is None else expanded_features(expanded)
