"""`GuestPlacement`: the host CPUs of a guest's vCPUs and emulator, and the host cells of its memory."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from roost.agent.drivers.libvirt.elements import range_set, ranges
from roost.agent.errors import BuildFailed
from roost.model.assignment import AssignedCell, Assignment
from roost.model.spec import Flavor


class PlacedCell(NamedTuple):
    """One NUMA cell of a guest: its vCPUs, each with its allowed host CPUs (none: any), and its memory.

    ``page_size_kb``: None: the smallest pages.
    """

    guest: int
    host: int
    vcpus: Mapping[int, frozenset[int]]
    memory_mb: int
    page_size_kb: int | None


class GuestPlacement(NamedTuple):
    """The cells of a guest; none if nothing is assigned. ``emulator``: host CPUs of its emulator threads."""

    cells: tuple[PlacedCell, ...] = ()
    emulator: frozenset[int] = frozenset()

    @property
    def floats_freely(self) -> bool:
        """True if no vCPU is limited to some host CPUs."""
        return not any(cpus for cell in self.cells for cpus in cell.vcpus.values())

    def write_backing(self, domain: Element, *, locked: bool) -> None:
        """Write the page sizes of the memory, and whether it is locked."""
        large = [cell for cell in self.cells if cell.page_size_kb is not None]
        if not large and not locked:
            return
        backing = SubElement(domain, "memoryBacking")
        if large:
            pages = SubElement(backing, "hugepages")
            for cell in large:
                SubElement(pages, "page", size=str(cell.page_size_kb), unit="KiB", nodeset=str(cell.guest))
        if locked:
            SubElement(backing, "locked")

    def write_tuning(self, domain: Element) -> None:
        """Write the host CPUs of vCPUs and emulator, and the host cells of the memory."""
        if not self.cells:
            return
        if not self.floats_freely:
            tune = SubElement(domain, "cputune")
            placed = {vcpu: cpus for cell in self.cells for vcpu, cpus in cell.vcpus.items() if cpus}
            for vcpu, cpus in sorted(placed.items()):
                SubElement(tune, "vcpupin", vcpu=str(vcpu), cpuset=ranges(cpus))
            SubElement(tune, "emulatorpin", cpuset=ranges(self.emulator))
        tune = SubElement(domain, "numatune")
        hosts = frozenset(cell.host for cell in self.cells)
        SubElement(tune, "memory", mode="strict", nodeset=ranges(hosts))
        for cell in self.cells:
            SubElement(tune, "memnode", cellid=str(cell.guest), mode="strict", nodeset=str(cell.host))

    def write_cells(self, cpu: Element) -> None:
        """Write the guest's own cells."""
        if not self.cells:
            return
        numa = SubElement(cpu, "numa")
        for cell in self.cells:
            SubElement(
                numa,
                "cell",
                id=str(cell.guest),
                cpus=ranges(frozenset(cell.vcpus)),
                memory=str(cell.memory_mb),
                unit="MiB",
            )


def placement_of(
    flavor: Flavor,
    assignment: Assignment | None,
    shared_of_cell: Mapping[int, frozenset[int]],
    base_page_kb: int,
) -> GuestPlacement:
    """Return the placement of a guest by its assignment. Raises `BuildFailed` for unreadable CPU lists."""
    if assignment is None or not assignment.cells:
        return GuestPlacement()
    cells = sorted(assignment.cells, key=lambda cell: cell.guest)
    pinned = {vcpu for cell in cells for vcpu, _ in cell.pinned}
    left = iter(sorted(set(range(flavor.vcpus)) - pinned))
    placed = tuple(_placed(flavor, cell, left, shared_of_cell, base_page_kb) for cell in cells)
    reserved = frozenset(cpu for cell in cells for cpu in cell.reserved)
    everywhere = frozenset[int]().union(*(cpus for cell in placed for cpus in cell.vcpus.values()))
    return GuestPlacement(placed, reserved or everywhere)


def _placed(
    flavor: Flavor,
    cell: AssignedCell,
    left: Iterator[int],
    shared_of_cell: Mapping[int, frozenset[int]],
    base_page_kb: int,
) -> PlacedCell:
    vcpus = {vcpu: frozenset({cpu}) for vcpu, cpu in cell.pinned}
    shared = shared_of_cell.get(cell.host, frozenset())
    for vcpu in _floating(flavor, cell, left):
        vcpus[vcpu] = shared
    page = None if cell.page_size_kb in (None, base_page_kb) else cell.page_size_kb
    return PlacedCell(cell.guest, cell.host, vcpus, cell.memory_mb, page)


def _floating(flavor: Flavor, cell: AssignedCell, left: Iterator[int]) -> list[int]:
    """Return the vCPUs of a cell on shared CPUs: the flavor's list for the cell, or the next ones."""
    if (named := flavor.extra_specs.get(f"hw:numa_cpus.{cell.guest}")) is None:
        return [*islice(left, cell.shared)]
    try:
        return sorted(range_set(named) - {vcpu for vcpu, _ in cell.pinned})
    except ValueError as error:
        raise BuildFailed(f"hw:numa_cpus.{cell.guest} {named!r} names no CPUs: {error}") from error
