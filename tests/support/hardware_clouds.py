"""Clouds whose nodes report NUMA cells and PCI devices: requests for these, reports, and what must hold."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from roost.agent.drivers.used_hardware import free_pools, used_topology
from roost.fleet.hardware.pci_aliases import aliases_from
from roost.model.assignment import Assignment, digest
from roost.model.inventory import Inventory
from roost.model.node import NodeInstance, NodeReport
from roost.model.spec import RequestSpec
from roost.scheduler import SchedulerOptions
from roost.scheduler.options import PciOptions
from roost.scheduler.request.demand.numa_groups import NUMA_ROOT, NumaModel, page_class
from support.clouds import Cloud, Provider, report, spec, uuid_of
from support.numa_hosts import reported, reported_cell

CPUS = 4
"""Of each of the two cells of a node."""
HUGE_PAGES = 512
"""Of 2 MiB, of each cell."""
DEVICES = {
    "nic": tuple(f"0000:81:00.{number}" for number in range(2)),
    "gpu": tuple(f"0000:c1:00.{number}" for number in range(2)),
}
CARDS = 3
"""Devices of a pool whose addresses the node does not report."""

_PRODUCTS = {"nic": "1520", "gpu": "1eb8", "card": "0001"}
_TOPOLOGY = reported(
    *(
        reported_cell(number, range(number * CPUS, (number + 1) * CPUS), pages={4: 1024, 2048: HUGE_PAGES})
        for number in range(2)
    )
)


def _pool(name: str, **more: object) -> dict[str, object]:
    return {"vendor_id": "8086", "product_id": _PRODUCTS[name], "dev_type": "type-PCI", **more}


_POOLS = (
    _pool("nic", numa_node=0, count=2, devices=list(DEVICES["nic"])),
    _pool("gpu", numa_node=1, count=2, devices=list(DEVICES["gpu"])),
    _pool("card", count=CARDS),
)

OPTIONS = SchedulerOptions(
    filters=("ComputeFilter", "NUMATopologyFilter", "PciPassthroughFilter"),
    pci=PciOptions(
        aliases_from(
            f'{{"name": "{name}", "vendor_id": "8086", "product_id": "{product}", "device_type": "type-PCI"}}'
            for name, product in _PRODUCTS.items()
        )
    ),
)


def _wanted(vcpus: int, memory_mb: int, **extra_specs: str) -> RequestSpec:
    specs = {name.replace("__", ":"): value for name, value in extra_specs.items()}
    return spec(vcpus, memory_mb, 0, extra_specs=specs)


REQUESTS = (
    _wanted(2, 512, hw__cpu_policy="dedicated", hw__mem_page_size="2048"),
    _wanted(1, 256, hw__cpu_policy="dedicated", hw__mem_page_size="large"),
    _wanted(4, 512, hw__cpu_policy="dedicated", hw__numa_nodes="2", hw__mem_page_size="2048"),
    _wanted(1, 128, hw__cpu_policy="dedicated", pci_passthrough__alias="nic:1", hw__mem_page_size="2048"),
    _wanted(1, 128, pci_passthrough__alias="gpu:1,card:1"),
    _wanted(1, 448, hw__numa_nodes="1", hw__mem_page_size="2048"),
)
"""Dedicated CPUs, huge pages, two cells, devices near to cells, devices alone, shared CPUs with pages."""


def hardware_cloud(count: int, numa_model: NumaModel = "objects") -> Cloud:
    """So many nodes. Placement has room for more than reported cells have: what binds is the hardware.

    With ``numa_model`` "both", every second node has its cells as child providers.
    """
    inventories = {"VCPU": Inventory(64), "PCPU": Inventory(64), "MEMORY_MB": Inventory(65536)}
    in_cells = {"VCPU": Inventory(CPUS), "PCPU": Inventory(CPUS), "MEMORY_MB": Inventory(1024)}
    in_cells[page_class(2048)] = Inventory(HUGE_PAGES)
    providers = []
    for number in range(count):
        if has_tree(number, numa_model):
            root, *cells = providers_of(number, numa_model)
            providers.append(Provider(root, {"DISK_GB": Inventory(100)}))
            providers += [Provider(each, dict(in_cells), root, frozenset((NUMA_ROOT,))) for each in cells]
        else:
            providers.append(Provider(uuid_of(number), dict(inventories)))
    return Cloud(providers, [node_report(number, {}, numa_model) for number in range(count)])


def has_tree(number: int, numa_model: NumaModel) -> bool:
    """Whether a node has its cells as child providers, and reports none."""
    return numa_model == "trees" or (numa_model == "both" and number % 2 == 1)


def providers_of(number: int, numa_model: NumaModel = "objects") -> list[str]:
    """The providers of a node, the root first."""
    cells = [uuid_of(0x1000 + 16 * number + cell) for cell in range(2)]
    return [uuid_of(number), *(cells if has_tree(number, numa_model) else [])]


def node_report(
    number: int, guests: Mapping[str, Assignment | None], numa_model: NumaModel = "objects"
) -> NodeReport:
    """The report of node ``number`` with these guests built on it."""
    assigned = [each for each in guests.values() if each is not None]
    instances = {
        name: NodeInstance(assignment="" if each is None else digest(each)) for name, each in guests.items()
    }
    return report(
        f"host{number}",
        uuid_of(number),
        numa_topology=None if has_tree(number, numa_model) else used_topology(_TOPOLOGY, assigned),
        pci_device_pools=free_pools(_POOLS, assigned),
        instances=instances,
        num_instances=len(instances),
    )


def check_assignments(assignments: Iterable[Assignment]) -> None:
    """No CPU, page or device of a node is assigned more than once."""
    by_node: defaultdict[str, list[Assignment]] = defaultdict(list)
    for each in assignments:
        by_node[each.node].append(each)
    for node, some in by_node.items():
        cpus = Counter(cpu for each in some for cell in each.cells for cpu in cell.cpus)
        addresses = Counter(name for each in some for devices in each.devices for name in devices.addresses)
        assert max([*cpus.values(), *addresses.values()], default=0) <= 1, f"{node}: {cpus} {addresses}"
        assert set(cpus) <= set(range(2 * CPUS))
        assert set(addresses) <= {each for names in DEVICES.values() for each in names}
        pages: Counter[int] = Counter()
        cards = 0
        for each in some:
            for cell in each.cells:
                if cell.page_size_kb == 2048:
                    pages[cell.host] += cell.memory_mb // 2
            cards += sum(devices.count for devices in each.devices if not devices.addresses)
        assert max(pages.values(), default=0) <= HUGE_PAGES, f"{node}: {pages}"
        assert cards <= CARDS, f"{node}: {cards} devices of {CARDS}"
