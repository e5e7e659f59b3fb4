"""Capacity and use of whole trees, against the plain oracle."""

import numpy as np
from hypothesis import given, settings

from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT
from support import oracle
from support.fleets import CLASSES, fleet_of, worlds
from support.oracle import Provider, World


@settings(deadline=None)
@given(worlds())
def test_totals_are_those_of_the_oracle(world: World) -> None:
    fleet = fleet_of(world)
    roots = [uuid for uuid, provider in world.items() if provider.parent is None]
    rows = np.array([fleet.row(uuid) for uuid in roots], dtype=np.int32)
    for name in CLASSES:
        capacity, used = fleet.tree_totals(name, rows)
        assert capacity.dtype == used.dtype == np.int64
        expected = [oracle.tree_totals(world, name, root) for root in roots]
        assert list(zip(capacity.tolist(), used.tolist(), strict=True)) == expected


def test_capacities_beyond_counting_stay_within_the_limit() -> None:
    endless = {"VCPU": Inventory(MAX_INT, allocation_ratio=3.4e38)}
    fleet = fleet_of({"root": Provider(None, endless), "child": Provider("root", endless)})
    capacity, used = fleet.tree_totals("VCPU", np.array([0], dtype=np.int32))
    assert capacity.tolist() == [CAPACITY_LIMIT]
    assert used.tolist() == [0]


def test_totals_of_many_trees_are_those_of_each_tree_to_the_last_unit() -> None:
    odd = {"VCPU": Inventory(MAX_INT, allocation_ratio=2.0**25)}
    world: World = {}
    for number in range(100):
        world[f"root{number}"] = Provider(None, odd)
        world[f"child{number}"] = Provider(f"root{number}", {"VCPU": Inventory(number + 1)})
    fleet = fleet_of(world)
    rows = np.array([fleet.row(f"root{number}") for number in range(100)], dtype=np.int32)
    capacity, _ = fleet.tree_totals("VCPU", rows)
    assert capacity.tolist() == [fleet.tree_totals("VCPU", rows[[at]])[0].item() for at in range(100)]
    assert capacity.tolist() == [oracle.tree_totals(world, "VCPU", f"root{n}")[0] for n in range(100)]
