"""The hosts of the cloud: in cells, zones and racks, some with NUMA cells and devices."""

from typing import Final

from roost.agent.drivers.simulated import SimulatedHost
from roost.agent.drivers.simulated_profiles import numa_topology, pci_device_pools
from roost.model.aggregate import AVAILABILITY_ZONE, HostAggregate
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from support.shown_cloud import names

CELLS: Final = ("north", "south", "lab")
"""The cells: one for each of the two zones, and one whose hosts are in no rack."""

ZONES: Final = ("zone-a", "zone-b")

VCPUS, MEMORY_MB, DISK_GB = 64, 256 * 1024, 4000
"""Of each host, whose name ends with its number in the rack."""

NUMA_CELLS, DEVICES = 2, 4
"""Of each host of a rack for accelerators."""

ACCELERATOR_RACKS: Final = ("a1", "b1")
"""The racks whose hosts have NUMA cells and devices."""

FAST_RACKS: Final = ("a2",)
"""The racks whose hosts have local NVMe disks, as a trait."""

NVME: Final = "CUSTOM_NVME"

_INVENTORY: Final = {
    "VCPU": Inventory(VCPUS, reserved=4, allocation_ratio=2.0),
    "MEMORY_MB": Inventory(MEMORY_MB, reserved=4096),
    "DISK_GB": Inventory(DISK_GB, reserved=100),
}

_PINNED: Final = {**_INVENTORY, "VCPU": Inventory(VCPUS), "PCPU": Inventory(VCPUS)}


def rack_names(racks: int) -> list[str]:
    """Return the names of the racks: a1, b1, a2, b2 and so on, a letter for each zone."""
    return [f"{'ab'[number % 2]}{number // 2 + 1}" for number in range(racks)]


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate."""
    return provider_uuid(f"aggregate {name}")


def shown_layout(racks: int = 6, hosts: int = 9, *, hostile: bool = True) -> SystemLayout:
    """Return the layout: so many racks with so many hosts, and a few hosts in no rack.

    ``hostile``: some aggregates and a zone have hostile names, and one host is in two racks.
    """
    cells: dict[str, list[LayoutHost]] = {name: [] for name in CELLS}
    for rack in rack_names(racks):
        place = "ab".index(rack[0])
        for number in range(1, hosts + 1):
            aggregates = [_aggregate(ZONES[place], **{AVAILABILITY_ZONE: ZONES[place]}), _rack(rack)]
            if hostile and number == hosts and rack == "b2":
                aggregates.append(_rack(names.SCRIPT))
            cells[CELLS[place]].append(LayoutHost(_host(rack, number), tuple(aggregates)))
    for number, name in enumerate((names.IMAGE, names.BIDI, names.LONG, names.EMOJI), 1):
        aggregates = [_aggregate(name, note=name)] if hostile else []
        if hostile and number == 4:
            aggregates.append(_aggregate(names.SCRIPT, **{AVAILABILITY_ZONE: names.SCRIPT}))
        cells["lab"].append(LayoutHost(SimulatedHost(f"lab-{number:02}", _INVENTORY), tuple(aggregates)))
    return SystemLayout({name: tuple(there) for name, there in cells.items()})


def _aggregate(name: str, **metadata: str) -> HostAggregate:
    return HostAggregate(aggregate_uuid(name), name, metadata)


def _rack(name: str) -> HostAggregate:
    return _aggregate(f"rack {name}", rack=name)


def _host(rack: str, number: int) -> SimulatedHost:
    name = f"{rack}-{number:02}"
    if rack in ACCELERATOR_RACKS:
        return SimulatedHost(
            name,
            _PINNED,
            numa_topology=numa_topology(NUMA_CELLS, VCPUS, MEMORY_MB),
            pci_device_pools=pci_device_pools(DEVICES, NUMA_CELLS),
        )
    return SimulatedHost(name, _INVENTORY, traits=(NVME,) if rack in FAST_RACKS else ())
