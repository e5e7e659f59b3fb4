"""The NUMA cells and devices of a host, and the consumers that hold them."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import HostCell, with_assigned
from roost.fleet.hardware.pci_pools import PciPool
from roost.model.assignment import Assigned
from roost.scheduler.nodes.outstanding import unreported
from roost.scheduler.nodes.table import NodeTable

CpuUse = Literal["free", "pinned", "reserved", "shared"]
"""``pinned`` to a guest's vCPU; ``reserved`` for emulator threads, or kept idle; ``shared``: vCPUs float."""

_TOLD_ELSEWHERE: Final = frozenset(
    ("vendor_id", "product_id", "dev_type", "address", "parent_ifname", "numa_node", "rp_uuid")
)
"""Properties of devices that their picture shows in another form, or does not show."""

MOST_DEVICES: Final = 200
"""Devices that a page shows at most."""


class PictureCpu(msgspec.Struct, frozen=True):
    """A CPU of a host. ``holder``: the consumer; None if it is free or shared, or if it is not known."""

    number: int
    use: CpuUse
    holder: str | None = None


class PicturePages(msgspec.Struct, frozen=True):
    """The pages of one size: KiB of one, the number of all, and of the free ones."""

    size_kb: int
    total: int
    free: int


class PictureCell(msgspec.Struct, frozen=True, kw_only=True):
    """A NUMA cell. ``cores``: the CPUs of each core, in order.

    ``shared_cpus``: those that shared vCPUs float over; ``shared_vcpus``: these vCPUs. Memory in MiB.
    """

    id: int
    socket: int | None
    cores: tuple[tuple[PictureCpu, ...], ...]
    shared_cpus: int
    shared_vcpus: int
    free_cpus: int
    memory_mb: int
    memory_used_mb: int
    pages: tuple[PicturePages, ...]
    networks: tuple[str, ...]


class PictureDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device, or ``count`` equal ones without addresses. ``numa_node``: None if it is not reported."""

    name: str
    kind: str
    count: int
    numa_node: int | None
    holder: str | None = None


class HostHardware(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware that the host reports, with what is assigned.

    ``unreadable``: the host reports a topology that cannot be read. ``waiting``: the number of consumers
    whose hardware the report does not count yet. ``more_devices``: devices that are left out.
    """

    cells: tuple[PictureCell, ...]
    devices: tuple[PictureDevice, ...]
    unreadable: bool = False
    waiting: int = 0
    more_devices: int = 0

    @property
    def holders(self) -> set[str]:
        """The uuids of the consumers that hold CPUs or devices."""
        cpus = {cpu.holder for cell in self.cells for core in cell.cores for cpu in core}
        return {each for each in (*cpus, *(device.holder for device in self.devices)) if each is not None}


def host_hardware(table: NodeTable, index: int, assigned: Assigned) -> HostHardware | None:
    """Return the hardware of a node; None if it reports none. ``assigned``: the assignments on it."""
    report = table.report(index)
    topology = table.numa.of(index)
    pools = table.pci.pools(index)
    if report.numa_topology is None and not pools and not assigned:
        return None
    waiting = unreported(report, assigned)
    cells: tuple[PictureCell, ...] = ()
    if topology is not None:
        used = with_assigned(topology, [cell for each in waiting.values() for cell in each.cells])
        cells = tuple(_cell(each, assigned) for each in used.cells)
    free = pools.without([each for one in waiting.values() for each in one.devices]).pools
    known = {pool.key: pool for pool in pools.pools}
    devices = [*_held(assigned, known), *(each for pool in free for each in _free(pool))]
    return HostHardware(
        cells=cells,
        devices=tuple(devices[:MOST_DEVICES]),
        unreadable=report.numa_topology is not None and topology is None,
        waiting=len(waiting),
        more_devices=max(0, len(devices) - MOST_DEVICES),
    )


def _cell(cell: HostCell, assigned: Assigned) -> PictureCell:
    held: dict[int, tuple[CpuUse, str]] = {}
    for consumer, each in assigned.items():
        for part in each.cells:
            if part.host == cell.id:
                held.update((cpu, ("pinned", consumer)) for _, cpu in part.pinned)
                held.update((cpu, ("reserved", consumer)) for cpu in (*part.reserved, *part.withheld))

    def cpu(number: int) -> PictureCpu:
        bit = 1 << number
        if number in held:
            return PictureCpu(number, *held[number])
        if cell.pinned & bit:
            return PictureCpu(number, "pinned")
        if not cell.pcpuset & bit or (cell.pcpuset == cell.cpuset and cell.cpu_usage and not cell.pinned):
            return PictureCpu(number, "shared")
        return PictureCpu(number, "free")

    every = cell.cpuset | cell.pcpuset
    cores = [core & every for core in cell.siblings if core & every]
    alone = every
    for core in cores:
        alone &= ~core
    grouped = sorted([*map(numbers_of, cores), *((number,) for number in numbers_of(alone))])
    return PictureCell(
        id=cell.id,
        socket=cell.socket,
        cores=tuple(tuple(map(cpu, core)) for core in grouped),
        shared_cpus=cell.cpuset.bit_count(),
        shared_vcpus=cell.cpu_usage,
        free_cpus=cell.free_cpus.bit_count(),
        memory_mb=cell.memory_mb,
        memory_used_mb=cell.memory_used_mb,
        pages=tuple(PicturePages(each.size_kb, each.total, max(0, each.free)) for each in cell.pages),
        networks=tuple(sorted(cell.physnets)) + (("tunnels",) if cell.tunneled else ()),
    )


def _held(assigned: Assigned, known: Mapping[str, PciPool]) -> list[PictureDevice]:
    found = []
    for consumer, each in sorted(assigned.items()):
        for devices in each.devices:
            pool = known.get(devices.pool) or _used_up(devices.pool)
            kind, node = _kind(pool), pool.numa_node
            for address in devices.addresses:
                found.append(PictureDevice(name=address, kind=kind, count=1, numa_node=node, holder=consumer))
            if not devices.addresses:
                found.append(
                    PictureDevice(name=kind, kind="", count=devices.count, numa_node=node, holder=consumer)
                )
    return found


def _used_up(key: str) -> PciPool:
    """Return a pool with nothing free, which the node does not report: its key says what it is."""
    ids, *named = key.split(" ")
    vendor, _, product = ids.partition(":")
    tags = dict(each.partition("=")[::2] for each in named)
    node = tags.pop("numa_node", "")
    return PciPool(
        key=key,
        count=0,
        properties={"vendor_id": vendor, "product_id": product, **tags},
        numa_node=int(node) if node.isdecimal() else None,
        dev_type=tags.get("dev_type", "").lower() or None,
    )


def _free(pool: PciPool) -> list[PictureDevice]:
    addresses = pool.addresses(0, pool.count)
    kind = _kind(pool)
    if not addresses:
        return [PictureDevice(name=kind, kind="", count=pool.count, numa_node=pool.numa_node)]
    return [PictureDevice(name=each, kind=kind, count=1, numa_node=pool.numa_node) for each in addresses]


def _kind(pool: PciPool) -> str:
    ids = ":".join(pool.properties.get(name) or "?" for name in ("vendor_id", "product_id"))
    more = [text for name, text in pool.properties.items() if text and name not in _TOLD_ELSEWHERE]
    return " ".join([ids, *([pool.dev_type] if pool.dev_type else []), *more])
