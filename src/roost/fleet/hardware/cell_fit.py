"""The fit of one guest cell on one host cell: the CPUs and pages of the host cell that it gets.

Source: ``_numa_fit_instance_cell`` of ``nova/virt/hardware.py``.
"""

from typing import NamedTuple

from roost.fleet.hardware.guest_topology import ANY, LARGE, SMALL, GuestCell, GuestTopology
from roost.fleet.hardware.host_topology import HostCell, Pages
from roost.fleet.hardware.lack import CellLack, LackKind
from roost.fleet.hardware.pinning import Pinning, pin
from roost.model.assignment import AssignedCell


class CellLimits(NamedTuple):
    """The allocation ratios of shared CPUs and memory of a host cell."""

    cpu_ratio: float
    ram_ratio: float


def fit_cell(
    host: HostCell, wanted: GuestTopology, number: int, limits: CellLimits
) -> AssignedCell | CellLack:
    """Return the part of a host cell that cell ``number`` of ``wanted`` gets, or what the host cell lacks."""
    guest = wanted.cells[number]
    size = _page_size(host, guest, wanted)
    if isinstance(size, CellLack):
        return size
    if wanted.shares and guest.shared > host.cpuset.bit_count():
        return CellLack(LackKind.SHARED_CPUS, guest.shared, host.cpuset.bit_count())
    pinning = Pinning(())
    if wanted.pins:
        found = pin(host, guest.pinned, wanted.thread_policy, wanted.reserved(number))
        if isinstance(found, CellLack):
            return found
        pinning = found
    if wanted.shares and (lack := _over(host, guest, limits)) is not None:
        return lack
    return AssignedCell(
        guest=guest.id,
        host=host.id,
        shared=guest.shared,
        pinned=tuple(zip(guest.dedicated, pinning.cpus, strict=True)),
        reserved=pinning.reserved,
        withheld=pinning.withheld,
        memory_mb=guest.memory_mb,
        page_size_kb=size,
    )


def _page_size(host: HostCell, guest: GuestCell, wanted: GuestTopology) -> int | CellLack | None:
    """Return the page size in KiB of the guest cell's memory, None if none was requested; or the lack."""
    if wanted.page_size is not None:
        return _asked_size(host, guest, wanted.page_size)
    if host.pages:
        # Memory may be overcommitted to several guests, but not to one guest alone.
        smallest = host.pages[0]
        if not _suits(smallest, guest, free=wanted.pins):
            has = smallest.free_kb if wanted.pins else smallest.total_kb
            return CellLack(LackKind.MEMORY, guest.memory_mb, has // 1024)
        return None
    has_mb = host.free_memory_mb if wanted.pins else host.memory_mb
    if has_mb < guest.memory_mb:
        return CellLack(LackKind.MEMORY, guest.memory_mb, has_mb)
    return None


def _asked_size(host: HostCell, guest: GuestCell, asked: int) -> int | CellLack:
    """Return the largest page size that was requested and suits, or the lack of one."""
    pages = host.pages
    if asked in (SMALL, LARGE, ANY):
        among = {SMALL: pages[:1], LARGE: pages[1:], ANY: pages}[asked]
    else:
        among = tuple(each for each in pages if each.size_kb == asked)
    if not among:
        return CellLack(LackKind.PAGE_SIZE)
    for each in reversed(among):
        if _suits(each, guest, free=True):
            return each.size_kb
    most = max(each.free_kb for each in among) // 1024
    return CellLack(LackKind.PAGES, guest.memory_mb, most)


def _suits(pages: Pages, guest: GuestCell, *, free: bool) -> bool:
    """Return whether a guest cell's memory is a whole number of pages of which enough exist, or are free."""
    memory_kb = guest.memory_mb * 1024
    return memory_kb <= (pages.free_kb if free else pages.total_kb) and memory_kb % pages.size_kb == 0


def _over(host: HostCell, guest: GuestCell, limits: CellLimits) -> CellLack | None:
    """Return the lack if a guest cell with shared CPUs would exceed the allocation ratios, else None."""
    cpus = host.cpuset.bit_count() * limits.cpu_ratio
    if host.cpu_usage + guest.shared > cpus:
        return CellLack(LackKind.CPU_RATIO, guest.shared, max(0, int(cpus) - host.cpu_usage))
    memory = host.memory_mb * limits.ram_ratio
    if host.memory_used_mb + guest.memory_mb > memory:
        return CellLack(LackKind.RAM_RATIO, guest.memory_mb, max(0, int(memory) - host.memory_used_mb))
    return None
