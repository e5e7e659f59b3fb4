"""`HostCapabilities`: CPUs, NUMA cells and guest architectures of a host, from libvirt's XML."""

from typing import NamedTuple
from xml.etree.ElementTree import Element

from roost.agent.drivers.libvirt.elements import kib, number, parsed, range_set, text_at, whole
from roost.agent.errors import UnreadableDescription


class HostThread(NamedTuple):
    """One logical CPU of a host. ``socket``: None if not reported. ``siblings``: all CPUs of its core."""

    id: int
    socket: int | None
    siblings: frozenset[int]


class MemoryPages(NamedTuple):
    """The number of pages of one size of a cell."""

    size_kb: int
    total: int


class HostNumaCell(NamedTuple):
    """One NUMA cell: its memory in KiB, its pages by size, ascending, and its CPUs."""

    id: int
    memory_kb: int
    pages: tuple[MemoryPages, ...]
    cpus: tuple[HostThread, ...]


class GuestKind(NamedTuple):
    """An architecture of guests: the kinds of domains (``kvm``, ``qemu``, ``test``) and the machine types."""

    arch: str
    os_type: str
    domain_types: tuple[str, ...]
    machines: tuple[str, ...]
    emulator: str | None


class HostCapabilities(NamedTuple):
    """A host. ``features``: flags of its CPU beyond those of its ``model``."""

    arch: str
    model: str | None
    vendor: str | None
    features: frozenset[str]
    cells: tuple[HostNumaCell, ...]
    guests: tuple[GuestKind, ...]

    @property
    def cpus(self) -> frozenset[int]:
        """The CPUs that are online."""
        return frozenset(cpu.id for cell in self.cells for cpu in cell.cpus)


def read_host_capabilities(text: str) -> HostCapabilities:
    """Read libvirt's XML of capabilities. Raises `UnreadableDescription`.

    A host without a topology has no cells.
    """
    root = parsed(text, "capabilities")
    arch = text_at(root, "host/cpu/arch")
    if arch is None:
        raise UnreadableDescription("libvirt's capabilities name no architecture of the host")
    return HostCapabilities(
        arch=arch,
        model=text_at(root, "host/cpu/model"),
        vendor=text_at(root, "host/cpu/vendor"),
        features=frozenset(each.get("name", "") for each in root.findall("host/cpu/feature")) - {""},
        cells=tuple(sorted(_cell(each) for each in root.findall("host/topology/cells/cell"))),
        guests=tuple(_guest(each) for each in root.findall("guest")),
    )


def _cell(cell: Element) -> HostNumaCell:
    memory = cell.find("memory")
    pages = [
        MemoryPages(size, whole(each.text or "", "pages"))
        for each in cell.findall("pages")
        if (size := number(each, "size"))
    ]
    return HostNumaCell(
        number(cell, "id") or 0,
        0 if memory is None else kib(memory),
        tuple(sorted(pages)),
        # An offline CPU has an id and nothing else.
        tuple(_thread(each) for each in cell.findall("cpus/cpu") if each.get("siblings")),
    )


def _thread(cpu: Element) -> HostThread:
    try:
        siblings = range_set(cpu.get("siblings", ""))
    except ValueError as error:
        raise UnreadableDescription(f"libvirt tells siblings of a CPU that are no CPUs: {error}") from error
    return HostThread(number(cpu, "id") or 0, number(cpu, "socket_id"), siblings)


def _guest(guest: Element) -> GuestKind:
    arch = guest.find("arch")
    if arch is None or not arch.get("name"):
        raise UnreadableDescription("libvirt's capabilities have guests without an architecture")
    domains = arch.findall("domain")
    machines = {each.text or "": None for within in (arch, *domains) for each in within.findall("machine")}
    return GuestKind(
        arch.get("name", ""),
        text_at(guest, "os_type") or "hvm",
        tuple(each.get("type", "") for each in domains),
        tuple(machines),
        text_at(arch, "emulator"),
    )
