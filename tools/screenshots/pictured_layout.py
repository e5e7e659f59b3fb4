"""The hosts of the pictured cloud: three zones of ten racks, each zone a cell."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from roost.agent.drivers.simulated import SimulatedHost
from roost.agent.drivers.simulated_profiles import numa_topology, pci_device_pools
from roost.model.aggregate import AVAILABILITY_ZONE, HostAggregate
from roost.model.inventory import Inventory
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from support.shown_cloud.layout import aggregate_uuid

ZONES: Final = ("a", "b", "c")
"""Letters of the zones: the racks a01, a02, ... are in the zone az1 and the cell cell1."""

RACKS, HOSTS = 10, 20
"""Racks of a zone, and hosts of a rack."""

NVME: Final = "CUSTOM_NVME"
"""The trait of hosts with fast local disks."""

GPUS, NUMA_CELLS = 4, 2
"""Of each host with GPUs."""


class Machine(NamedTuple):
    """A kind of host. ``vcpus``: threads; ``memory_mb``: MiB; ``disk_gb``: GiB."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    traits: tuple[str, ...] = ()
    gpus: int = 0


GENERAL: Final = Machine(64, 262_144, 4_000)
FAST: Final = Machine(96, 524_288, 8_000, (NVME,))
ACCELERATED: Final = Machine(64, 262_144, 4_000, gpus=GPUS)


class Place(NamedTuple):
    """The place of a host: the letter of its zone, and its numbers of rack and host, from 1."""

    zone: str
    rack: int
    host: int

    @property
    def name(self) -> str:
        """The name of the host, such as a07-12."""
        return f"{self.zone}{self.rack:02}-{self.host:02}"

    @property
    def machine(self) -> Machine:
        """The kind of the host: the last rack of a zone has GPUs, the two before it fast disks."""
        return {RACKS: ACCELERATED, RACKS - 1: FAST, RACKS - 2: FAST}.get(self.rack, GENERAL)

    @property
    def aggregates(self) -> tuple[HostAggregate, HostAggregate]:
        """The aggregates of its zone and of its rack."""
        zone, rack = zone_of(self.zone), f"{self.zone}{self.rack:02}"
        return _aggregate(zone, AVAILABILITY_ZONE, zone), _aggregate(f"rack {rack}", "rack", rack)


PICTURED_HOST: Final = Place("b", RACKS, 7)
"""The host whose page is pictured: it has NUMA cells and GPUs, some of both in use."""

LOST_HOST: Final = Place("c", 4, 20)
"""A host that is down."""


def places() -> Iterator[Place]:
    """Yield the places of all hosts, by zone and rack."""
    for zone in ZONES:
        for rack in range(1, RACKS + 1):
            for host in range(1, HOSTS + 1):
                yield Place(zone, rack, host)


def pictured_layout() -> SystemLayout:
    """Return the layout of the cloud."""
    cells: dict[str, list[LayoutHost]] = {cell_of(zone): [] for zone in ZONES}
    for place in places():
        if place == LOST_HOST:
            continue  # it joins later
        cells[cell_of(place.zone)].append(LayoutHost(simulated_host(place), place.aggregates))
    return SystemLayout({name: tuple(hosts) for name, hosts in cells.items()})


def simulated_host(place: Place) -> SimulatedHost:
    """Return the host at a place."""
    machine = place.machine
    inventory = {
        "VCPU": Inventory(machine.vcpus, reserved=4, allocation_ratio=2.0),
        "MEMORY_MB": Inventory(machine.memory_mb, reserved=8_192),
        "DISK_GB": Inventory(machine.disk_gb, reserved=100),
    }
    if not machine.gpus:
        return SimulatedHost(place.name, inventory, traits=machine.traits)
    return SimulatedHost(
        place.name,
        {**inventory, "VCPU": Inventory(machine.vcpus), "PCPU": Inventory(machine.vcpus)},
        traits=machine.traits,
        numa_topology=numa_topology(NUMA_CELLS, machine.vcpus, machine.memory_mb),
        pci_device_pools=pci_device_pools(machine.gpus, NUMA_CELLS),
    )


def zone_of(letter: str) -> str:
    """Return the name of a zone."""
    return f"az{ZONES.index(letter) + 1}"


def cell_of(letter: str) -> str:
    """Return the name of the cell of a zone."""
    return f"cell{ZONES.index(letter) + 1}"


def _aggregate(name: str, key: str, value: str) -> HostAggregate:
    return HostAggregate(aggregate_uuid(name), name, {key: value})
