"""Fleets to measure on, as descriptions.

A plan says what one host is like and how many there are; `roost.bench.memory` makes a fleet of it,
`roost.bench.filling` a database. All hosts of a plan are alike but for who uses how much of them, so that a
million of them can be made by arithmetic: part ``k`` of host ``h`` has the row ``h * len(tree) + k``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from roost.fleet.columns import Int64
from roost.model.allocation import Resources
from roost.model.inventory import Inventory
from roost.model.vocabulary import is_custom

SEED: Final = 42
AGGREGATES: Final = 50
COMMON_TRAITS: Final = tuple(sorted(f"CUSTOM_TRAIT_{number:02}" for number in range(40)))
"""Of every host."""
DISABLED_EVERY: Final = 51
"""Each host of this number is disabled. It divides no count of aggregates."""
HOSTS_AT_ONCE: Final = 20_000


@dataclass(frozen=True)
class Part:
    """One provider of each host's tree.

    ``parent`` is the place in the tree of the provider above it, None for the root. ``held``: what the
    host's consumer holds here for each unit that it uses.
    """

    name: str
    parent: int | None
    inventories: Mapping[str, Inventory]
    traits: tuple[str, ...] = ()
    held: Resources = field(default_factory=dict)


@dataclass(frozen=True)
class FleetPlan:
    """``hosts`` equal trees. Each has one consumer, which uses ``least_used`` to ``most_used`` units."""

    name: str
    hosts: int
    tree: tuple[Part, ...]
    most_used: int
    least_used: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.hosts:,}"

    @property
    def key(self) -> str:
        """What tells its databases from those of other plans: lower case, digits and underscores."""
        return f"{self.name}_{self.hosts}".replace("-", "_")

    @property
    def providers(self) -> int:
        """How many there are in all."""
        return self.hosts * len(self.tree)

    @property
    def custom_names(self) -> tuple[set[str], set[str]]:
        """The custom resource classes and the custom traits."""
        classes = {name for part in self.tree for name in part.inventories if is_custom(name)}
        traits = {name for part in self.tree for name in part.traits if is_custom(name)}
        return classes, traits

    def host_name(self, host: int) -> str:
        """The name of a host and of its root provider."""
        return f"host-{host}"

    def aggregates(self) -> list[str]:
        """The uuids of the aggregates; host ``h`` is in the one at ``h % AGGREGATES``."""
        return uuids(np.random.default_rng(SEED + 1), AGGREGATES)

    def portions(self) -> "Iterator[Portion]":
        """The hosts in order, some at a time, always the same."""
        rng = np.random.default_rng(SEED)
        for first in range(0, self.hosts, HOSTS_AT_ONCE):
            count = min(HOSTS_AT_ONCE, self.hosts - first)
            yield Portion(
                first,
                uuids(rng, count * len(self.tree)),
                uuids(rng, count),
                rng.integers(self.least_used, self.most_used + 1, count),
            )

    def roots(self) -> list[str]:
        """The uuids of the root providers, in order."""
        return [uuid for portion in self.portions() for uuid in portion.providers[:: len(self.tree)]]


@dataclass(frozen=True)
class Portion:
    """Some hosts in a row.

    ``providers``: uuids, by host, then by part. ``consumers``: uuids by host. ``used``: units that each
    consumer uses, int64[hosts].
    """

    first: int
    providers: list[str]
    consumers: list[str]
    used: Int64


_VCPU = Inventory(64, allocation_ratio=4.0)
_MEMORY = Inventory(458_752, reserved=512)
_DISK = Inventory(4_000)
_UNIT = {"VCPU": 1, "MEMORY_MB": 2_048, "DISK_GB": 10}


def flat(hosts: int) -> FleetPlan:
    """Hosts of 64 threads without children; 3 classes, 40 traits, one of 50 aggregates; half in use."""
    stock = {"VCPU": _VCPU, "MEMORY_MB": _MEMORY, "DISK_GB": _DISK}
    return FleetPlan("flat", hosts, (Part("", None, stock, COMMON_TRAITS, _UNIT),), most_used=119)


def nearly_full(hosts: int) -> FleetPlan:
    """Flat hosts with room for some 31 to 56 claims of one thread and 512 MiB."""
    return replace(flat(hosts), name="full", least_used=200, most_used=216)


def nested(hosts: int) -> FleetPlan:
    """Two NUMA nodes under each host, four physical functions of 8 virtual ones under each: 11 providers."""
    parts = [Part("", None, {"DISK_GB": _DISK}, COMMON_TRAITS, {"DISK_GB": 20})]
    for node in range(2):
        above = len(parts)
        stock = {"VCPU": Inventory(32, allocation_ratio=4.0), "MEMORY_MB": Inventory(229_376, reserved=256)}
        held = {"VCPU": 1, "MEMORY_MB": 2_048}
        parts.append(Part(f"_NUMA{node}", 0, stock, ("HW_NUMA_ROOT",), held))
        for function in range(4):
            physnet = f"CUSTOM_PHYSNET_{function % 2}"
            functions = {"SRIOV_NET_VF": Inventory(8)}
            parts.append(Part(f"_NUMA{node}_PF{function}", above, functions, (physnet,)))
    return FleetPlan("nested", hosts, tuple(parts), most_used=59)


def wide(hosts: int, devices: int = 8) -> FleetPlan:
    """Hosts with ``devices`` physical functions of 8 virtual ones right under the root."""
    stock = {"VCPU": _VCPU, "MEMORY_MB": _MEMORY, "DISK_GB": _DISK}
    parts = [Part("", None, stock, COMMON_TRAITS, _UNIT)]
    parts += [Part(f"_PF{number}", 0, {"SRIOV_NET_VF": Inventory(8)}) for number in range(devices)]
    return FleetPlan(f"wide{devices}", hosts, tuple(parts), most_used=119)


def uuids(rng: np.random.Generator, count: int) -> list[str]:
    """Random uuids of version 4."""
    digits = rng.bytes(16 * count).hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
        f"-a{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, 32 * count, 32)
    ]
