"""Utilisation: sums by class, and the fullest providers, against plain counting."""

import numpy as np
from hypothesis import given, settings
from hypothesis.strategies import integers

from roost.fleet.utilisation import FullProvider, class_uses, fullest_providers, uses_of_groups
from roost.model.inventory import Inventory
from support.fleets import fleet_of, worlds
from support.oracle import Provider, World


@settings(deadline=None)
@given(worlds())
def test_sums_and_order_are_those_of_plain_counting(world: World) -> None:
    fleet = fleet_of(world)
    rows = [int(row) for row in fleet.rows()]
    classes = sorted({name for row in rows for name in (*fleet.inventories(row), *fleet.usages(row))})
    assert [use.resource_class for use in class_uses(fleet)] == classes
    shares: dict[int, float] = {}
    for use in class_uses(fleet):
        capacities = {row: _capacity(fleet.inventories(row).get(use.resource_class)) for row in rows}
        amounts = {row: fleet.usages(row).get(use.resource_class, 0) for row in rows}
        assert use.capacity == sum(max(each, 0) for each in capacities.values())
        assert use.used == sum(amounts.values())
        for row in rows:
            shares[row] = max(shares.get(row, 0.0), amounts[row] / max(capacities[row], 1))
    full = sorted((row for row in shares if shares[row]), key=lambda row: (-shares[row], fleet.name(row)))
    for most in (0, 1, 3, len(rows)):
        assert [each.row for each in fullest_providers(fleet, most)] == full[:most]
        assert [each.share for each in fullest_providers(fleet, most)] == [shares[row] for row in full[:most]]


def _capacity(inventory: Inventory | None) -> int:
    return 0 if inventory is None else inventory.capacity


def test_the_class_of_a_full_provider_is_the_fullest_one() -> None:
    inventories = {"VCPU": Inventory(8, allocation_ratio=2.0), "DISK_GB": Inventory(10)}
    world = {
        "a": Provider(None, inventories, used={"VCPU": 4, "DISK_GB": 9}),
        "b": Provider(None, inventories, used={"VCPU": 16}),
        "c": Provider(None, inventories),
    }
    fleet = fleet_of(world)
    assert fullest_providers(fleet, 9) == [
        FullProvider(fleet.row("b"), "VCPU", 16, 16, 1.0),
        FullProvider(fleet.row("a"), "DISK_GB", 10, 9, 0.9),
    ]


@settings(deadline=None)
@given(worlds(), integers(1, 3))
def test_sums_of_groups_of_trees_are_those_of_plain_counting(world: World, n_groups: int) -> None:
    fleet = fleet_of(world)
    rows = [int(row) for row in fleet.rows()]
    # Every tree but those of the last number is in a group.
    group = np.arange(fleet.n_rows) % (n_groups + 1)
    group[group == n_groups] = -1
    found = uses_of_groups(fleet, group, n_groups)
    for name, (capacity, used) in found.items():
        for number in range(n_groups):
            there = [row for row in rows if group[int(fleet.root[row])] == number]
            capacities = [max(_capacity(fleet.inventories(row).get(name)), 0) for row in there]
            assert capacity[number] == sum(capacities)
            assert used[number] == sum(
                fleet.usages(row).get(name, 0) for row in there if name in fleet.inventories(row)
            )
