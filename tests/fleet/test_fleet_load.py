"""A fleet from whole columns is the fleet that changes make, and changes as that one does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet, Inconsistent
from roost.fleet.inventory_columns import InventoryRecords
from roost.fleet.provider_forest import ProviderColumns
from roost.model.change import ProviderChanged, ProviderFacts
from roost.model.inventory import Inventory
from support.fleets import CLASSES, fleet_of, snapshot, worlds
from support.oracle import Provider, World


def providers(world: World, first_row: int = 0) -> ProviderColumns:
    rows = {uuid: row for row, uuid in enumerate(world, first_row)}
    parents = [-1 if each.parent is None else rows[each.parent] for each in world.values()]
    return ProviderColumns(
        np.array(list(rows.values()), dtype=np.intp),
        list(world),
        [f"name of {uuid}" for uuid in world],
        np.array(parents, dtype=np.int32),
        np.zeros(len(world), dtype=np.int64),
        np.zeros(len(world)),
    )


def from_columns(world: World, first_row: int) -> Fleet:
    rows = {uuid: row for row, uuid in enumerate(world, first_row)}
    inventories = {}
    used = {}
    for name in CLASSES:
        having = [
            (rows[uuid], each.inventories[name]) for uuid, each in world.items() if name in each.inventories
        ]
        if having:
            records = [
                (row, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio)
                for row, i in having
            ]
            at, *columns = np.array(records, dtype=float).T
            inventories[name] = InventoryRecords(at.astype(np.intp), *columns)
        held = [(rows[uuid], each.used[name]) for uuid, each in world.items() if each.used.get(name)]
        if held:
            pairs = np.array(held)
            used[name] = pairs[:, 0].astype(np.intp), pairs[:, 1]
    return Fleet.load(
        providers(world, first_row),
        inventories,
        [(tuple(sorted(each.traits)), [rows[uuid]]) for uuid, each in world.items() if each.traits],
        [(tuple(sorted(each.aggregates)), [rows[uuid]]) for uuid, each in world.items() if each.aggregates],
        used,
    )


@settings(deadline=None)
@given(worlds(), st.integers(0, 3))
def test_columns_and_changes_make_the_same_fleet(world: World, first_row: int) -> None:
    made, expected = from_columns(world, first_row), fleet_of(world, first_row)
    assert snapshot(made) == snapshot(expected)
    for fleet in (made, expected):
        row = fleet.free_row()
        fleet.apply(ProviderChanged("new", row, None, ProviderFacts("new", next(iter(world)), 0)))
    assert snapshot(made) == snapshot(expected)


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1), st.floats(0, 3.4e38, allow_subnormal=False))
def test_capacity_is_that_of_the_inventory(total: int, reserved: int, ratio: float) -> None:
    inventory = Inventory(total, reserved, allocation_ratio=ratio)
    columns = (np.array([each]) for each in (total, reserved, 1, 2**31 - 1, 1, ratio))
    fleet = Fleet.load(
        providers({"p": Provider()}), {"VCPU": InventoryRecords(np.array([0]), *columns)}, (), (), {}
    )
    loaded = fleet.inventory_columns("VCPU")
    assert loaded.inventory(0) == inventory
    assert loaded.capacity.item(0) == max(-(2**62), min(inventory.capacity, 2**62))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_a_circle_of_parents_is_refused(length: int) -> None:
    rows = np.arange(length)
    names = [f"p{row}" for row in range(length)]
    circle = ProviderColumns(rows, names, names, np.roll(rows, 1).astype(np.int32), rows, rows.astype(float))
    with pytest.raises(Inconsistent, match="its own ancestor"):
        Fleet.load(circle, {}, (), (), {})
