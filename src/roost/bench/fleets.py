"""Fleets to measure on."""

import uuid

import numpy as np

from roost.fleet import Fleet
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitChanged,
    TraitsChanged,
)
from roost.model.host import HostReport
from roost.model.inventory import Inventory
from roost.scheduler.hosts import HostTable

AGGREGATES = 50
CELLS = 10
FIRST_CUSTOM_TRAIT = 10_000
_TRAITS = tuple(sorted(f"CUSTOM_TRAIT_{number}" for number in range(40)))
_INVENTORY = {
    "VCPU": Inventory(64, allocation_ratio=4.0),
    "MEMORY_MB": Inventory(458_752, reserved=512),
    "DISK_GB": Inventory(4_000),
}


def flat_fleet(hosts: int, rng: np.random.Generator) -> tuple[Fleet, HostTable]:
    """Equal hosts without children, each half used at random: 3 classes, 40 traits, one of 50 aggregates.

    Returns the fleet and the host table, all hosts up.
    """
    fleet = Fleet()
    RegisterStandardNames().run(State(fleet, {}, 0.0))
    for number, name in enumerate(_TRAITS):
        fleet.apply(TraitChanged(name, None, FIRST_CUSTOM_TRAIT + number))
    aggregates = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(AGGREGATES)]
    reports = []
    for row in range(hosts):
        node = str(uuid.UUID(bytes=rng.bytes(16)))
        fleet.apply(ProviderChanged(node, row, None, ProviderFacts(f"host-{row}", None, 0)))
        fleet.apply(InventoryChanged(node, {}, _INVENTORY))
        fleet.apply(TraitsChanged(node, (), _TRAITS))
        fleet.apply(AggregatesChanged(node, (), (aggregates[row % AGGREGATES],)))
        used = int(rng.integers(1, 120))
        holds = {node: {"VCPU": used, "MEMORY_MB": used * 2_048, "DISK_GB": used * 10}}
        fleet.apply(AllocationsChanged(f"consumer-{row}", None, None, {}, holds))
        reports.append(HostReport(host=f"host-{row}", node=node, cell=f"cell{row % CELLS}", last_seen=0.0))
    return fleet, HostTable(reports)
