"""Descriptions of the fleets that benchmarks measure.

A plan describes one host and the number of hosts. `roost.bench.memory_fleet` builds a fleet in memory from a
plan, `roost.bench.bulk_load` a database. The hosts of a plan differ only in names, uuids and usages. So a
million hosts can be built by arithmetic: provider ``k`` of host ``h`` has the row ``h * len(tree) + k``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from roost.fleet.columns import Int64
from roost.model.allocation import Resources
from roost.model.inventory import Inventory
from roost.model.vocabulary import is_custom

PROJECT = "bench-project"
USER = "bench-user"
"""The owner of all consumers."""

SEED: Final = 42
AGGREGATES: Final = 50
COMMON_TRAITS: Final = tuple(sorted(f"CUSTOM_TRAIT_{number:02}" for number in range(40)))
"""Traits of every host."""
DISABLED_EVERY: Final = 51
"""One host in this many is disabled. The number has no divisor in common with `AGGREGATES`."""
BATCH_HOSTS: Final = 20_000
"""Hosts of a `HostBatch`."""


@dataclass(frozen=True)
class ProviderPlan:
    """One provider of the tree that each host has.

    ``parent``: the index of its parent in the tree; None for the root. ``usage``: the amount of each resource
    class that the host's consumer allocates here, for each of its units.
    """

    name: str
    parent: int | None
    inventories: Mapping[str, Inventory]
    traits: tuple[str, ...] = ()
    usage: Resources = field(default_factory=dict)


@dataclass(frozen=True)
class FleetPlan:
    """A fleet of ``hosts`` equal trees.

    Each host has one consumer with ``least_used`` to ``most_used`` units, drawn at random.
    """

    name: str
    hosts: int
    tree: tuple[ProviderPlan, ...]
    most_used: int
    least_used: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.hosts:,}"

    @property
    def key(self) -> str:
        """The plan's part of a database name: lower case letters, digits and underscores."""
        return f"{self.name}_{self.hosts}".replace("-", "_")

    @property
    def providers(self) -> int:
        """The number of providers of all hosts."""
        return self.hosts * len(self.tree)

    @property
    def custom_names(self) -> tuple[set[str], set[str]]:
        """The names of the custom resource classes and of the custom traits."""
        classes = {name for part in self.tree for name in part.inventories if is_custom(name)}
        traits = {name for part in self.tree for name in part.traits if is_custom(name)}
        return classes, traits

    def host_name(self, host: int) -> str:
        """Return the name of a host and of its root provider."""
        return f"host-{host}"

    def aggregates(self) -> list[str]:
        """Return the uuids of the aggregates. Host ``h`` is a member of aggregate ``h % AGGREGATES``."""
        return uuids(np.random.default_rng(SEED + 1), AGGREGATES)

    def host_batches(self) -> "Iterator[HostBatch]":
        """Yield all hosts in order, in batches. Every call yields the same hosts."""
        rng = np.random.default_rng(SEED)
        for first in range(0, self.hosts, BATCH_HOSTS):
            count = min(BATCH_HOSTS, self.hosts - first)
            yield HostBatch(
                first,
                uuids(rng, count * len(self.tree)),
                uuids(rng, count),
                rng.integers(self.least_used, self.most_used + 1, count),
            )

    def roots(self) -> list[str]:
        """Return the uuids of the root providers in the order of the hosts."""
        return [uuid for batch in self.host_batches() for uuid in batch.providers[:: len(self.tree)]]


@dataclass(frozen=True)
class HostBatch:
    """Consecutive hosts, the first of which is ``first``.

    ``providers`` has the uuids of all providers, by host and then by index in the tree; ``consumers`` has a
    uuid for each host. ``used``: int64[hosts], the units of each host's consumer.
    """

    first: int
    providers: list[str]
    consumers: list[str]
    used: Int64


PINNED_CPUS: Final = 64
"""Dedicated CPUs of a host of `pinned`."""

_VCPU = Inventory(64, allocation_ratio=4.0)
_MEMORY = Inventory(458_752, reserved=512)
_DISK = Inventory(4_000)
_UNIT = {"VCPU": 1, "MEMORY_MB": 2_048, "DISK_GB": 10}


def flat(hosts: int) -> FleetPlan:
    """Hosts of 64 VCPUs, half used, without child providers; 40 traits and one of 50 aggregates each."""
    inventories = {"VCPU": _VCPU, "MEMORY_MB": _MEMORY, "DISK_GB": _DISK}
    return FleetPlan(
        "flat", hosts, (ProviderPlan("", None, inventories, COMMON_TRAITS, _UNIT),), most_used=119
    )


def nearly_full(hosts: int) -> FleetPlan:
    """Flat hosts with capacity for some 31 to 56 claims of one VCPU and 512 MiB each."""
    return replace(flat(hosts), name="full", least_used=200, most_used=216)


def pinned(hosts: int) -> FleetPlan:
    """Hosts of `PINNED_CPUS` dedicated CPUs in two NUMA cells, which they report as objects."""
    inventories = {
        "PCPU": Inventory(PINNED_CPUS),
        "VCPU": Inventory(PINNED_CPUS, allocation_ratio=4.0),
        "MEMORY_MB": _MEMORY,
        "DISK_GB": _DISK,
    }
    unit = {"PCPU": 1, "MEMORY_MB": 2_048, "DISK_GB": 10}
    root = ProviderPlan("", None, inventories, COMMON_TRAITS, unit)
    return FleetPlan("pinned", hosts, (root,), most_used=PINNED_CPUS // 2)


def devices(hosts: int) -> FleetPlan:
    """Pinned hosts with `GPUS` PCI devices in each NUMA cell; different ones are in use on each host."""
    return replace(pinned(hosts), name="devices")


GPUS: Final = 4
"""Devices in each NUMA cell of a host of `devices`."""

GPU: Final = {"vendor_id": "10de", "product_id": "2236"}
"""The ids of these devices."""

NODE_MEMORY_MB: Final = 229_376
"""Memory of a NUMA node of nested hosts, in MiB."""


def nested(hosts: int) -> FleetPlan:
    """Hosts of two NUMA nodes with four PFs of eight VFs each: 11 providers a host."""
    parts = [ProviderPlan("", None, {"DISK_GB": _DISK}, COMMON_TRAITS, {"DISK_GB": 20})]
    for node in range(2):
        numa_index = len(parts)
        inventories = {
            "VCPU": Inventory(32, allocation_ratio=4.0),
            "MEMORY_MB": Inventory(NODE_MEMORY_MB, reserved=256),
        }
        usage = {"VCPU": 1, "MEMORY_MB": 2_048}
        parts.append(ProviderPlan(f"_NUMA{node}", 0, inventories, ("HW_NUMA_ROOT",), usage))
        for function in range(4):
            physnet = f"CUSTOM_PHYSNET_{function % 2}"
            functions = {"SRIOV_NET_VF": Inventory(8)}
            parts.append(ProviderPlan(f"_NUMA{node}_PF{function}", numa_index, functions, (physnet,)))
    return FleetPlan("nested", hosts, tuple(parts), most_used=59)


def wide(hosts: int, devices: int = 8) -> FleetPlan:
    """Hosts of ``devices`` PFs of eight VFs each, which are children of the root."""
    inventories = {"VCPU": _VCPU, "MEMORY_MB": _MEMORY, "DISK_GB": _DISK}
    parts = [ProviderPlan("", None, inventories, COMMON_TRAITS, _UNIT)]
    parts += [ProviderPlan(f"_PF{number}", 0, {"SRIOV_NET_VF": Inventory(8)}) for number in range(devices)]
    return FleetPlan(f"wide{devices}", hosts, tuple(parts), most_used=119)


def uuids(rng: np.random.Generator, count: int) -> list[str]:
    """Return random uuids of version 4."""
    digits = rng.bytes(16 * count).hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
        f"-a{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, 32 * count, 32)
    ]
