"""The NUMA topology that a flavor and an image ask for.

Source: ``numa_get_constraints`` of ``nova/virt/hardware.py``, with all its checks.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, cast

from roost.fleet.hardware.guest_topology import (
    ANY,
    LARGE,
    SMALL,
    CpuPolicy,
    GuestCell,
    GuestTopology,
    ThreadPolicy,
)
from roost.model.spec import Flavor, Image, RequestSpec
from roost.scheduler.request.demand.cpus import (
    EMULATOR,
    cpu_policy,
    cpu_set,
    dedicated_mask,
    realtime_mask,
    thread_policy,
)
from roost.scheduler.request.demand.features import memory_encryption
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.image_properties import is_true

MOST_CELLS = 128
"""Most guest cells that extra specs or properties can list. Source: ``NUMA_NODES_MAX`` of Nova."""

_AMOUNT = re.compile(r"resources([1-9][0-9]*)?:(VCPU|PCPU)")
_HYPERTHREADING = re.compile(r"trait([1-9][0-9]*)?:HW_CPU_HYPERTHREADING")
_SIZES = {"any": ANY, "large": LARGE, "small": SMALL}
_SIZE = re.compile(r"(\d*\.?\d+)(?:([KMGTPE])i?)?(b|bit|B)")

_Read = TypeVar("_Read")


def guest_topology(flavor: Flavor, image: Image | None) -> GuestTopology | None:
    """Return the topology that flavor and image ask for; None if they ask for none.

    NUMA nodes, a page size, dedicated or mixed CPUs, and persistent memory each ask for one.

    Raises:
        BadRequestSpec: an extra spec or a property has an invalid value, or they contradict each other.
    """
    if not flavor.extra_specs and (image is None or not image.properties):
        return None
    asked = FlavorImage(flavor, image)
    policy, threads = _policies(asked)
    pinned = _dedicated(asked, policy)
    nodes, size = _nodes(asked), _page_size(asked)
    _check_locked_memory(asked)
    if not (nodes or size or asked.of_flavor("pmem") or policy in ("dedicated", "mixed")):
        return None
    return GuestTopology(
        cells=_cells(asked, nodes or 1, pinned),
        cpu_policy=policy or "shared",
        thread_policy=threads or "prefer",
        page_size=size or None,
        isolate_emulator=asked.of_flavor("emulator_threads_policy", EMULATOR) == "isolate",
    )


def wanted_topology(spec: RequestSpec) -> GuestTopology | None:
    """As `guest_topology`, for a request. The last results are cached: one decision calls it several times.

    Raises: `BadRequestSpec`.
    """
    flavor, image = spec.flavor, spec.image
    if not flavor.extra_specs and (image is None or not image.properties):
        return None
    found = _last.get((id(flavor), id(image)))
    if found is None:
        if len(_last) >= _MOST_LAST:
            _last.clear()
        # The cache holds flavor and image too: as long as they live no other object has their ids.
        found = _last[id(flavor), id(image)] = flavor, image, guest_topology(flavor, image)
    return found[2]


_MOST_LAST = 64
_last: dict[tuple[int, int], tuple[Flavor, Image | None, GuestTopology | None]] = {}


# CPUs


def _policies(asked: FlavorImage) -> tuple[CpuPolicy | None, ThreadPolicy | None]:
    """Return the policies of CPUs and of threads, given as policies or by amounts and traits."""
    policy, threads = cpu_policy(asked), thread_policy(asked)
    amounts = dict(_amounts(asked.flavor))
    if amounts and policy:
        raise asked.bad_flavor(next(iter(amounts)), "cannot be combined with a CPU policy")
    totals = Counter[str]()
    for key, amount in amounts.items():
        totals["PCPU" if ":PCPU" in key else "VCPU"] += amount
    if totals["VCPU"] and totals["PCPU"]:
        raise asked.bad_flavor(next(iter(amounts)), "cannot be combined with amounts of VCPU and PCPU both")
    if totals["PCPU"]:
        isolated = asked.of_flavor("emulator_threads_policy", EMULATOR) == "isolate"
        needed = asked.flavor.vcpus + isolated
        if totals["PCPU"] != needed:
            raise asked.bad_flavor(next(iter(amounts)), f"must be {needed} for {asked.flavor.vcpus} vCPUs")
        policy = "dedicated"
    elif totals["VCPU"]:
        policy = "shared"
    trait = _hyperthreading(asked)
    if trait and threads:
        raise asked.bad_flavor("hw:cpu_thread_policy", "cannot be combined with trait:HW_CPU_HYPERTHREADING")
    threads = {"forbidden": "isolate", "required": "require"}.get(trait or "", threads)
    return cast("CpuPolicy | None", policy), cast("ThreadPolicy | None", threads)


def _amounts(flavor: Flavor) -> Iterator[tuple[str, int]]:
    """Yield the amounts of VCPU and PCPU in the flavor's extra specs, by extra spec; numbers only."""
    for key, value in flavor.extra_specs.items():
        if _AMOUNT.match(key) and value.strip().isdigit() and int(value):
            yield key, int(value)


def _hyperthreading(asked: FlavorImage) -> str | None:
    for key, value in asked.flavor.extra_specs.items():
        if _HYPERTHREADING.match(key):
            return value
    required = asked.properties.get("traits_required", "")
    return "required" if "HW_CPU_HYPERTHREADING" in required else None


def _dedicated(asked: FlavorImage, policy: str | None) -> frozenset[int]:
    """Return the numbers of the dedicated vCPUs."""
    realtime, mask = realtime_mask(asked), dedicated_mask(asked)
    if policy in ("shared", None):
        if thread_policy(asked) or _hyperthreading(asked) in ("required", "forbidden"):
            raise asked.bad_flavor("hw:cpu_policy", "must be dedicated or mixed for a policy of threads")
        if asked.of_flavor("emulator_threads_policy", EMULATOR) == "isolate":
            raise asked.bad_flavor("hw:emulator_threads_policy", "needs hw:cpu_policy=dedicated or mixed")
        if mask:
            raise asked.bad_flavor("hw:cpu_dedicated_mask", "needs hw:cpu_policy=mixed")
        if realtime:
            raise asked.bad_flavor("hw:cpu_realtime", "needs hw:cpu_policy=dedicated or mixed")
        return frozenset()
    if policy == "dedicated":
        if mask:
            raise asked.bad_flavor("hw:cpu_dedicated_mask", "needs hw:cpu_policy=mixed")
        return frozenset(range(asked.flavor.vcpus))
    if bool(realtime) == bool(mask):
        raise asked.bad_flavor(
            "hw:cpu_policy",
            "needs one of hw:cpu_dedicated_mask, and hw:cpu_realtime with hw:cpu_realtime_mask",
        )
    return mask or realtime or frozenset()


# Memory


def _page_size(asked: FlavorImage) -> int | None:
    """Return the requested page size. An image may choose one if the flavor leaves it open."""
    flavor, image = asked.of_flavor("mem_page_size"), asked.of_image("mem_page_size")
    if image and not flavor:
        raise asked.bad_image("hw_mem_page_size", "needs hw:mem_page_size=any or large in the flavor")
    if not flavor:
        return None
    size = _size(asked, "hw:mem_page_size", flavor)
    if not image:
        return size
    if size not in (ANY, LARGE):
        raise asked.conflict("mem_page_size")
    return _size(asked, "hw_mem_page_size", image)


def _size(asked: FlavorImage, key: str, text: str) -> int:
    """Read a page size: a word, KiB, or a number with a unit; units are powers of 1024."""
    if text in _SIZES:
        return _SIZES[text]
    if text.isdigit() and text.isascii() and len(text) < 16:
        return int(text)
    bad = asked.bad_flavor if ":" in key else asked.bad_image
    found = _SIZE.fullmatch(text)
    if found is None:
        raise bad(key, f"is none of {', '.join(_SIZES)}, and no size such as 2048 (KiB), 2MB or 1GB")
    bits = 1 if found[3] == "B" else 8
    factor: int = 1024 ** " KMGTPE".index(found[2] or " ")
    octets = math.ceil(float(found[1]) / bits * factor)
    if octets % 1024 or not octets:
        raise bad(key, "is no whole number of KiB")
    return octets // 1024


def _check_locked_memory(asked: FlavorImage) -> None:
    flavor = asked.flavor.extra_specs.get("hw:locked_memory")
    image = asked.properties.get("hw_locked_memory")
    if flavor is not None and image is not None and is_true(flavor) != is_true(image):
        raise asked.conflict("locked_memory")
    locked = is_true(image or "") if flavor is None else is_true(flavor)
    if locked and not (asked.of_flavor("mem_page_size") or asked.of_image("mem_page_size")):
        bad = asked.bad_image if flavor is None else asked.bad_flavor
        raise bad("hw_locked_memory" if flavor is None else "hw:locked_memory", "needs hw:mem_page_size")
    if not locked:
        memory_encryption(asked)


# Cells


def _nodes(asked: FlavorImage) -> int | None:
    flavor, image = asked.of_flavor("numa_nodes"), asked.of_image("numa_nodes")
    if flavor and image:
        raise asked.bad_image("hw_numa_nodes", "cannot be combined with hw:numa_nodes of the flavor")
    text = flavor or image
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        bad = asked.bad_image if flavor is None else asked.bad_flavor
        raise bad("hw_numa_nodes" if flavor is None else "hw:numa_nodes", "is no whole number from 1 on")
    return int(text)


def _cells(asked: FlavorImage, nodes: int, pinned: frozenset[int]) -> tuple[GuestCell, ...]:
    cpus = _listed(asked, "numa_cpus", cpu_set)
    memory = _listed(asked, "numa_mem", int)
    if cpus is None and memory is None:
        return tuple(_equal_cells(asked, nodes, pinned))
    if cpus is None or memory is None or len(cpus) != nodes or len(memory) != nodes:
        raise asked.bad_flavor(
            "hw:numa_nodes", "needs CPUs (numa_cpus.N) and memory (numa_mem.N) for each node"
        )
    _check_listed(asked, cpus, memory)
    return tuple(
        _cell(number, one, mb, pinned) for number, (one, mb) in enumerate(zip(cpus, memory, strict=True))
    )


def _equal_cells(asked: FlavorImage, nodes: int, pinned: frozenset[int]) -> Iterator[GuestCell]:
    vcpus, memory_mb = asked.flavor.vcpus, asked.flavor.memory_mb
    for amount, unit in ((vcpus, "vCPUs"), (memory_mb, "MiB")):
        if amount % nodes:
            raise asked.bad_flavor("hw:numa_nodes", f"does not divide {amount} {unit} into equal parts")
    each = vcpus // nodes
    for number in range(nodes):
        cpus = frozenset(range(number * each, (number + 1) * each))
        yield _cell(number, cpus, memory_mb // nodes, pinned)


def _cell(number: int, cpus: frozenset[int], memory_mb: int, pinned: frozenset[int]) -> GuestCell:
    dedicated = tuple(sorted(cpus & pinned))
    return GuestCell(number, len(cpus) - len(dedicated), dedicated, memory_mb)


def _listed(asked: FlavorImage, matter: str, read: Callable[[str], _Read]) -> list[_Read] | None:
    """Return the values that flavor or image give for each guest cell; None if they give none."""
    flavor = _numbered(asked.flavor.extra_specs, f"hw:{matter}.", read, asked.bad_flavor)
    image = _numbered(asked.properties, f"hw_{matter}.", read, asked.bad_image)
    if flavor and image:
        raise asked.bad_image(f"hw_{matter}.0", f"cannot be combined with hw:{matter}.0 of the flavor")
    return flavor or image or None


def _numbered(
    values: Mapping[str, str],
    key: str,
    read: Callable[[str], _Read],
    bad: Callable[[str, str], Exception],
) -> list[_Read]:
    found: list[_Read] = []
    while len(found) < MOST_CELLS and (text := values.get(f"{key}{len(found)}")) is not None:
        try:
            found.append(read(text))
        except ValueError as error:
            raise bad(f"{key}{len(found)}", f"cannot be read: {error}") from error
    return found


def _check_listed(asked: FlavorImage, cpus: list[frozenset[int]], memory: list[int]) -> None:
    seen: set[int] = set()
    everything = frozenset(range(asked.flavor.vcpus))
    for number, one in enumerate(cpus):
        key = f"hw:numa_cpus.{number}"
        if not one <= everything:
            raise asked.bad_flavor(key, f"names vCPUs beyond the {asked.flavor.vcpus} of the flavor")
        if one & seen:
            raise asked.bad_flavor(key, f"names vCPU {min(one & seen)} for a second time")
        seen |= one
    if seen != everything:
        raise asked.bad_flavor("hw:numa_cpus.0", f"and the others leave out vCPU {min(everything - seen)}")
    if sum(memory) != asked.flavor.memory_mb or min(memory) < 0:
        raise asked.bad_flavor(
            "hw:numa_mem.0", f"and the others are {sum(memory)} MiB, not {asked.flavor.memory_mb}"
        )
