"""A fleet in memory and its node table, built from a plan without a database."""

import numpy as np

from roost.bench.fleets import (
    AGGREGATES,
    DISABLED_EVERY,
    GPU,
    GPUS,
    PINNED_CPUS,
    PROJECT,
    SEED,
    USER,
    FleetPlan,
    uuids,
)
from roost.fleet import Fleet
from roost.ledger import State
from roost.ledger.vocabulary import FIRST_CUSTOM_CLASS, RegisterStandardNames
from roost.model.aggregate import Aggregate
from roost.model.allocation import Consumer
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
)
from roost.model.node import NodeReport
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.nodes.table import NodeTable

CELLS = 10
_MEMORY_MB = 458_752
"""MiB of a host of the plan ``pinned``."""
FIRST_CUSTOM_TRAIT = 10_000


def build_fleet(plan: FleetPlan) -> Fleet:
    """Build the fleet that `roost.bench.bulk_load.bulk_load` writes, change by change."""
    fleet = Fleet()
    RegisterStandardNames().run(State(fleet, {}, 0.0))
    classes, custom_traits = plan.custom_names
    for number, name in enumerate(sorted(classes)):
        fleet.apply(ResourceClassChanged(name, None, FIRST_CUSTOM_CLASS + number))
    for number, name in enumerate(sorted(custom_traits)):
        fleet.apply(TraitChanged(name, None, FIRST_CUSTOM_TRAIT + number))
    aggregates = plan.aggregates()
    parts = [(part, dict(part.inventories), tuple(sorted(part.traits))) for part in plan.tree]
    disabled = tuple(sorted((*plan.tree[0].traits, DISABLED_TRAIT)))
    for batch in plan.host_batches():
        for index, (consumer, used) in enumerate(zip(batch.consumers, batch.used.tolist(), strict=True)):
            host = batch.first + index
            own = batch.providers[index * len(parts) : (index + 1) * len(parts)]
            row = host * len(parts)
            allocations = {}
            for place, (part, inventories, traits) in enumerate(parts):
                uuid = own[place]
                parent = None if part.parent is None else own[part.parent]
                facts = ProviderFacts(plan.host_name(host) + part.name, parent, 0)
                fleet.apply(ProviderChanged(uuid, row + place, None, facts))
                fleet.apply(InventoryChanged(uuid, {}, inventories))
                if not place and host % DISABLED_EVERY == DISABLED_EVERY - 1:
                    traits = disabled
                if traits:
                    fleet.apply(TraitsChanged(uuid, (), traits))
                if part.usage:
                    allocations[uuid] = {name: used * amount for name, amount in part.usage.items()}
            fleet.apply(AggregatesChanged(own[0], (), (aggregates[host % AGGREGATES],)))
            owner = Consumer(consumer, PROJECT, USER, 1, "INSTANCE")
            fleet.apply(AllocationsChanged(consumer, None, owner, {}, allocations))
    return fleet


def build_node_table(plan: FleetPlan, projects: int = 0) -> NodeTable:
    """Build the table of a plan's hosts. All are up, and spread over `CELLS` cells.

    With ``projects`` above 0, every second host is reserved for one of so many projects.
    """
    used = [units for batch in plan.host_batches() for units in batch.used.tolist()]
    rng = np.random.default_rng(SEED + 3)
    table = NodeTable(
        NodeReport(
            host=plan.host_name(host),
            node=node,
            cell=f"cell{host % CELLS}",
            last_seen=0.0,
            numa_topology=_numa_topology(plan, used[host], rng),
            pci_device_pools=_devices(rng) if plan.name == "devices" else (),
        )
        for host, node in enumerate(plan.roots())
    )
    # The feed of a scheduler does the same before the first request.
    while table.decode(plan.hosts):
        pass
    closed = plan.roots()[1::2]
    aggregates = [
        Aggregate(
            uuid=uuid,
            name=f"projects-{number}",
            metadata={"filter_tenant_id": f"project-{number}"},
            members=frozenset(closed[number::projects]),
        )
        for number, uuid in enumerate(uuids(np.random.default_rng(SEED + 2), projects))
    ]
    table.set_aggregates(aggregates, {each.uuid for each in aggregates})
    return table


def _numa_topology(plan: FleetPlan, used: int, rng: np.random.Generator) -> dict[str, object] | None:
    """Return the report of a host of two NUMA cells with hyperthreads; None if the plan has no cells.

    ``used`` of its CPUs are pinned: the first ones, or random ones if each host of the plan is different.
    """
    if plan.name not in ("pinned", "devices"):
        return None
    cells: list[dict[str, object]] = []
    size = PINNED_CPUS // 2
    pinned = (
        range(used)
        if plan.name == "pinned"
        else sorted(rng.choice(PINNED_CPUS, used, replace=False).tolist())
    )
    for number in range(2):
        cpus = list(range(number * size, (number + 1) * size))
        pages = _MEMORY_MB // 2 * 1024 // 2048
        members = {
            "id": number,
            "cpuset": cpus,
            "pcpuset": cpus,
            "pinned_cpus": [cpu for cpu in cpus if cpu in pinned],
            "siblings": [cpus[at : at + 2] for at in range(0, size, 2)],
            "memory": _MEMORY_MB // 2,
            "mempages": [
                {"size_kb": 4, "total": _MEMORY_MB // 4 * 256},
                {"size_kb": 2048, "total": pages // 2, "used": min(pages // 2, used * 4)},
            ],
        }
        cells.append({"nova_object.name": "NUMACell", "nova_object.data": members})
    return {"nova_object.name": "NUMATopology", "nova_object.data": {"cells": cells}}


def _devices(rng: np.random.Generator) -> tuple[dict[str, object], ...]:
    """Return the device pools of a host that reports each device with its address."""
    free = np.flatnonzero(rng.random(2 * GPUS) < 0.7).tolist()
    return tuple(
        {
            **GPU,
            "dev_type": "type-PCI",
            "count": 1,
            "numa_node": number // GPUS,
            "address": f"0000:{number:02x}:00.0",
        }
        for number in free
    )
