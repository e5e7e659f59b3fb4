"""The NUMA cells and devices of a host as a picture."""

from collections.abc import Mapping

import htpy as h

from roost.dashboard.html.bars import swatch
from roost.dashboard.html.places import instance_link
from roost.dashboard.html.values import amount, number
from roost.dashboard.views.host import HostPageView
from roost.dashboard.views.host_hardware import CpuUse, HostHardware, PictureCell, PictureCpu, PictureDevice

_RECT = h.Element("rect")
_GROUP = h.Element("g")
_TITLE = h.Element("title")

_SIZE = 10
"""Width and height of a CPU in the picture."""

_COLUMNS = 16
"""CPUs in a row at most; the threads of a core stand above each other."""

_CLASSES: dict[CpuUse, str] = {
    "free": "",
    "pinned": "cell-used",
    "shared": "cell-shared",
    "reserved": "cell-reserved",
}


def hardware_section(view: HostPageView) -> h.Node:
    """Return the picture of the host's NUMA cells and devices."""
    hardware = view.hardware
    if hardware is None:
        if view.report is None or not view.cell:
            return None
        return h.section(".card")[
            h.h2["NUMA cells and devices"],
            h.p(".muted")["Its agent reports no NUMA cells and no PCI devices."],
        ]
    cells = [_cell(each, hardware, view.names) for each in hardware.cells]
    loose = [each for each in hardware.devices if not _has_cell(each, hardware)]
    return h.section(".card", aria_labelledby="hardware")[
        h.div(".section-head")[
            h.h2("#hardware")["NUMA cells and devices"],
            h.ul(".legend")[
                [
                    h.li[
                        swatch(f"cell {kind}"),
                        text,
                    ]
                    for kind, text in (
                        ("cell-used", "pinned"),
                        ("cell-shared", "shared"),
                        ("cell-reserved", "emulator or idle"),
                        ("", "free"),
                    )
                ]
            ],
        ],
        hardware.unreadable
        and h.p(".notice.state-look")["Its agent reports a NUMA topology that cannot be read."],
        h.div(".boxes")[cells] if cells else None,
        [
            h.h3["Devices without a NUMA cell"],
            h.div(".boxes")[h.div(".box")[[_device(each, view.names) for each in loose]]],
        ]
        if loose
        else None,
        hardware.more_devices > 0
        and h.p(".muted")[f"{number(hardware.more_devices)} more devices are not shown."],
        hardware.waiting > 0
        and h.p(".muted")[
            f"Counted before the next report has it: the hardware of {number(hardware.waiting)} consumers."
        ],
    ]


def _has_cell(device: PictureDevice, hardware: HostHardware) -> bool:
    return any(cell.id == device.numa_node for cell in hardware.cells)


def _cell(cell: PictureCell, hardware: HostHardware, names: Mapping[str, str]) -> h.Node:
    cpus = [cpu for core in cell.cores for cpu in core]
    pinned = sum(cpu.use == "pinned" for cpu in cpus)
    words = f"Cell {cell.id}: {len(cpus)} CPUs, {pinned} pinned, {cell.free_cpus} free to pin"
    if cell.shared_cpus:
        words += f", {cell.shared_vcpus} vCPUs float over {cell.shared_cpus}"
    socket = "" if cell.socket is None else f", socket {cell.socket}"
    return h.div(".box")[
        h.div(".box-title")[
            h.span[f"Cell {cell.id}{socket}"],
            h.span(".muted.num")[f"{number(cell.free_cpus)} of {number(len(cpus))} CPUs free to pin"],
        ],
        _grid(cell, words, names),
        h.p(".muted.num")[
            f"{amount('MEMORY_MB', cell.memory_used_mb)} of {amount('MEMORY_MB', cell.memory_mb)} memory used"
            + (
                f"; {number(cell.shared_vcpus)} vCPUs float over {number(cell.shared_cpus)} CPUs"
                if cell.shared_vcpus
                else ""
            )
        ],
        _pages(cell),
        cell.networks and h.p(".muted")["Close to ", h.bdi[", ".join(cell.networks)]],
        [_device(each, names) for each in hardware.devices if each.numa_node == cell.id],
        _table(cpus, names),
    ]


def _grid(cell: PictureCell, words: str, names: Mapping[str, str]) -> h.Node:
    """Return the CPUs as squares: a column for each core, its threads above each other."""
    threads = max((len(core) for core in cell.cores), default=1)
    columns = min(len(cell.cores), _COLUMNS) or 1
    bands = -(-len(cell.cores) // columns)
    height = bands * (threads * _SIZE + 3) - 3
    squares = []
    for place, core in enumerate(cell.cores):
        x, y = (place % columns) * _SIZE, (place // columns) * (threads * _SIZE + 3)
        for thread, cpu in enumerate(core):
            squares.append(_square(cpu, x, y + thread * _SIZE, names))
    return h.svg(
        ".cell-grid", viewBox=f"0 0 {columns * _SIZE} {max(height, _SIZE)}", role="img", aria_label=words
    )[squares]


def _square(cpu: PictureCpu, x: int, y: int, names: Mapping[str, str]) -> h.Node:
    said = f"CPU {cpu.number}: {cpu.use}" + (f", {names.get(cpu.holder, cpu.holder)}" if cpu.holder else "")
    return _RECT(
        class_=f"cell {_CLASSES[cpu.use]}".strip(),
        x=f"{x}",
        y=f"{y}",
        width=f"{_SIZE - 1.5}",
        height=f"{_SIZE - 1.5}",
        rx="1.5",
    )[_TITLE[said]]


def _pages(cell: PictureCell) -> h.Node:
    large = [each for each in cell.pages if each.size_kb > 4]
    if not large:
        return None
    return h.p(".muted.num")[
        "Pages free: ",
        ", ".join(f"{number(each.free)} of {number(each.total)} of {_size(each.size_kb)}" for each in large),
    ]


def _size(size_kb: int) -> str:
    return f"{size_kb} KiB" if size_kb < 1024 else amount("MEMORY_MB", size_kb // 1024)


def _device(each: PictureDevice, names: Mapping[str, str]) -> h.Node:
    count = f"{number(each.count)} × " if each.count > 1 else ""
    return h.div(class_=["device", each.holder and "device-used"])[
        h.span[count, h.span(".mono")[each.name]],
        h.span(".muted")[each.kind],
        instance_link(each.holder, names.get(each.holder)) if each.holder else h.span(".muted")["free"],
    ]


def _table(cpus: list[PictureCpu], names: Mapping[str, str]) -> h.Node:
    """Return who holds which CPUs, for readers of the text."""
    held: dict[tuple[str, str], list[int]] = {}
    for cpu in cpus:
        if cpu.holder is not None:
            held.setdefault((cpu.holder, cpu.use), []).append(cpu.number)
    if not held:
        return None
    return h.details[
        h.summary(".muted")[f"Who holds its CPUs: {number(len({holder for holder, _ in held}))}"],
        h.ul[
            [
                h.li[
                    instance_link(holder, names.get(holder)),
                    " ",
                    h.span(".muted.num")[f"{use}: {', '.join(map(str, numbers))}"],
                ]
                for (holder, use), numbers in held.items()
            ]
        ],
    ]
