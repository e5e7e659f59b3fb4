"""Random NUMA topologies of nodes, and flavors that ask for some: many that just fit, or just do not."""

from random import Random
from typing import Any

from roost.model.spec import Flavor, Image, NetworkMetadata, NumaPolicy, PciRequest
from support.numa_hosts import reported

SMALL_KB, BIG_KB, HUGE_KB = 4, 2048, 2**20
PHYSNETS = ("red", "blue")


def topology(random: Random) -> dict[str, Any]:
    """What a node reports: one to four cells, with threads, pages and networks, some of it used."""
    threads = random.choice((1, 2, 2, 4))
    cores = random.choice((1, 2, 3, 4))
    apart = random.random() < 0.4
    sizes = random.choice(((SMALL_KB,), (SMALL_KB, BIG_KB), (SMALL_KB, BIG_KB, HUGE_KB), (BIG_KB, HUGE_KB)))
    networks = random.random() < 0.3
    cells, first = [], 0
    for number in range(random.choice((1, 2, 2, 3, 4))):
        cpus = list(range(first, first + threads * cores))
        first += len(cpus)
        cells.append(_cell(random, number, cpus, threads, sizes, apart=apart, networks=networks))
    return reported(*cells)


def _cell(
    random: Random,
    number: int,
    cpus: list[int],
    threads: int,
    sizes: tuple[int, ...],
    *,
    apart: bool,
    networks: bool,
) -> dict[str, Any]:
    shared, dedicated = cpus, cpus
    if apart:
        at = random.randrange(0, len(cpus) + 1)
        shared, dedicated = cpus[:at], cpus[at:]
    pinned = [cpu for cpu in dedicated if random.random() < random.choice((0.0, 0.0, 0.0, 0.3, 0.7))]
    memory_mb = random.choice((1024, 2048, 4096))
    pages = []
    for size_kb in sizes:
        total = memory_mb * 1024 // size_kb
        used = random.choice((0, 0, 0, total // 2, total))
        reserved = random.choice((0, 0, 0, min(64, total - used)))
        pages.append({"size_kb": size_kb, "total": total, "used": used, "reserved": reserved})
    cell: dict[str, Any] = {
        "id": number,
        "cpuset": shared,
        "pcpuset": dedicated,
        "memory": memory_mb,
        "cpu_usage": random.choice((0, 0, 0, 1, len(shared), 2 * len(shared))),
        "memory_usage": random.choice((0, 0, 0, 512, memory_mb)),
        "pinned_cpus": pinned,
        "siblings": [cpus[at : at + threads] for at in range(0, len(cpus), threads)],
        "mempages": pages if random.random() < 0.9 else [],
        "socket": number // 2,
    }
    if networks and random.random() < 0.7:
        physnets = [name for name in PHYSNETS if random.random() < 0.5]
        cell["network_metadata"] = {"physnets": physnets, "tunneled": random.random() < 0.4}
    return cell


def flavor(random: Random) -> Flavor:
    """A flavor that asks for a topology, most of them in a way that Nova allows."""
    nodes = random.choice((1, 1, 1, 2, 2, 3, 4))
    vcpus = nodes * random.choice((1, 1, 2, 2, 3, 4))
    memory_mb = nodes * random.choice((4, 256, 512, 1024, 1024, 2048))
    specs = {"hw:numa_nodes": str(nodes)}
    policy = random.choice(("", "shared", "dedicated", "dedicated", "dedicated", "mixed"))
    if policy:
        specs["hw:cpu_policy"] = policy
    if policy in ("dedicated", "mixed"):
        threads = random.choice(("", "", "prefer", "isolate", "require"))
        if threads:
            specs["hw:cpu_thread_policy"] = threads
        if random.random() < 0.25:
            specs["hw:emulator_threads_policy"] = random.choice(("isolate", "share"))
    if policy == "mixed" and vcpus > 1:
        specs["hw:cpu_dedicated_mask"] = f"^{random.randrange(vcpus)}"
    if random.random() < 0.5:
        specs["hw:mem_page_size"] = random.choice(("small", "large", "any", "4", "2048", "2MB", "1GB"))
    if nodes > 1 and random.random() < 0.4:
        specs |= _listed(random, nodes, vcpus, memory_mb)
    return Flavor("numa", vcpus, memory_mb, extra_specs=specs)


def _listed(random: Random, nodes: int, vcpus: int, memory_mb: int) -> dict[str, str]:
    """CPUs and memory for each cell, of different sizes."""
    cuts = sorted(random.sample(range(1, vcpus), nodes - 1)) if vcpus > nodes else range(1, nodes)
    cpus = [range(first, last) for first, last in zip((0, *cuts), (*cuts, vcpus), strict=True)]
    unit = memory_mb // (2 * nodes)
    memory = [random.choice((1, 2, 3)) * unit for _ in range(nodes - 1)]
    memory.append(memory_mb - sum(memory))
    if memory[-1] < 0:
        memory = [memory_mb // nodes] * nodes
    listed = {}
    for number in range(nodes):
        listed[f"hw:numa_cpus.{number}"] = ",".join(map(str, cpus[number]))
        listed[f"hw:numa_mem.{number}"] = str(memory[number])
    return listed


def network(random: Random) -> NetworkMetadata | None:
    """The networks of a request, mostly none."""
    if random.random() < 0.7:
        return None
    physnets = frozenset(name for name in PHYSNETS if random.random() < 0.5)
    return NetworkMetadata(physnets=physnets, tunneled=random.random() < 0.5)


def ratios(random: Random) -> tuple[float, float]:
    """The allocation ratios of a node, for CPUs and memory."""
    return random.choice((1.0, 2.0, 16.0)), random.choice((1.0, 1.5))


def devices(random: Random) -> tuple[list[dict[str, Any]], tuple[PciRequest, ...]]:
    """The PCI pools of a node, and requests for devices of them; mostly none."""
    if random.random() < 0.6:
        return [], ()
    pools = [
        {
            "vendor_id": "8086",
            "product_id": product,
            "numa_node": cell,
            "count": random.choice((1, 2, 4)),
            "dev_type": "type-PCI",
        }
        for product in ("1", "2")
        for cell in (0, 1, 2, None)
        if random.random() < 0.5
    ]
    policies: tuple[NumaPolicy | None, ...] = (None, "legacy", "required", "preferred", "socket")
    requests = tuple(
        PciRequest(
            id=f"r{number}",
            count=random.choice((1, 1, 2)),
            specs=({"vendor_id": "8086", "product_id": random.choice(("1", "2"))},),
            numa_policy=random.choice(policies),
        )
        for number in range(random.choice((0, 1, 1, 2)))
    )
    return pools, requests


_SPECS: dict[str, tuple[str, ...]] = {
    "hw:numa_nodes": ("1", "2", "2", "4", "0", "x", "-1", "2.0", ""),
    "hw:numa_cpus.0": ("0-1", "0", "0,2", "0-9", "x", ""),
    "hw:numa_cpus.1": ("2-3", "1", "1,3", "1-3,^2", "0"),
    "hw:numa_mem.0": ("512", "256", "1024", "x"),
    "hw:numa_mem.1": ("512", "768", "0"),
    "hw:mem_page_size": ("small", "large", "any", "2048", "2MB", "1GB", "4KiB", "8Kb", "2M", "x", "0", ""),
    "hw:cpu_policy": ("dedicated", "dedicated", "shared", "mixed", "x", ""),
    "hw:cpu_thread_policy": ("prefer", "isolate", "require", "x"),
    "hw:cpu_realtime": ("yes", "true", "no"),
    "hw:cpu_realtime_mask": ("0", "^0", "1-3", "0-3", "0-9", "x", ""),
    "hw:cpu_dedicated_mask": ("0", "^0", "1-3", "0-3", "^0-3", "x", ""),
    "hw:emulator_threads_policy": ("isolate", "share", "x"),
    "hw:locked_memory": ("true", "false", "x"),
    "resources:VCPU": ("4", "0", "x"),
    "resources:PCPU": ("4", "5", "0"),
    "resources1:PCPU": ("1",),
    "trait:HW_CPU_HYPERTHREADING": ("required", "forbidden"),
}
_PROPERTIES: dict[str, tuple[str, ...]] = {
    "hw_numa_nodes": ("1", "2"),
    "hw_numa_cpus.0": ("0-1", "0"),
    "hw_numa_cpus.1": ("2-3", "1-3"),
    "hw_numa_mem.0": ("512",),
    "hw_numa_mem.1": ("512",),
    "hw_mem_page_size": ("small", "large", "2048", "1GB"),
    "hw_cpu_policy": ("dedicated", "shared", "mixed"),
    "hw_cpu_thread_policy": ("prefer", "isolate", "require"),
    "hw_cpu_realtime_mask": ("^0", "1-3"),
    "hw_locked_memory": ("true", "false"),
    "trait:HW_CPU_HYPERTHREADING": ("required",),
}


def flavor_and_image(random: Random) -> tuple[Flavor, Image]:
    """A flavor of four vCPUs and 1 GiB, and an image, with words about topologies, right and wrong ones."""
    specs = _said(random, _SPECS, (0, 1, 1, 2, 2, 3, 4, 6))
    if random.random() < 0.3:
        specs |= {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-1", "hw:numa_cpus.1": "2-3"}
        specs |= {"hw:numa_mem.0": "512", "hw:numa_mem.1": random.choice(("512", "512", "256"))}
    properties = _said(random, _PROPERTIES, (0, 0, 0, 1, 2))
    return Flavor("numa", 4, 1024, extra_specs=specs), Image(properties=properties)


def _said(random: Random, words: dict[str, tuple[str, ...]], most: tuple[int, ...]) -> dict[str, str]:
    return {key: random.choice(words[key]) for key in random.sample(sorted(words), random.choice(most))}
