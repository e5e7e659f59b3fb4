"""The inventory columns of one class against a dictionary of inventories and use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.fleet.errors import Inconsistent
from roost.fleet.inventory_columns import CAPACITY_LIMIT, InventoryColumns
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT
from support.fleets import inventories

ROWS = st.integers(0, 20)
AMOUNTS = (1, 2, 3, 4, 6, 8, 100, MAX_INT - 1, MAX_INT, MAX_INT + 1, 2**32, 2**63, 10**30)

extreme = st.builds(
    Inventory,
    total=st.sampled_from([1, 1000, MAX_INT]),
    reserved=st.sampled_from([0, 1, 2000, MAX_INT]),
    min_unit=st.sampled_from([1, MAX_INT]),
    max_unit=st.sampled_from([1, 8, MAX_INT]),
    step_size=st.sampled_from([1, 4, MAX_INT]),
    allocation_ratio=st.sampled_from([1e-30, 1.0, 16.0, 1e10, 3.4e38]),
)

OPERATIONS = st.one_of(
    st.tuples(st.just("put"), ROWS, inventories() | extreme),
    st.tuples(st.just("remove"), ROWS),
    st.tuples(st.just("use"), ROWS, st.integers(-4, 6) | st.sampled_from([2**31, 2**40])),
)


def limited(capacity: int) -> int:
    return max(-CAPACITY_LIMIT, min(CAPACITY_LIMIT, capacity))


def assert_same(columns: InventoryColumns, has: dict[int, Inventory], used: dict[int, int]) -> None:
    rows = columns.row[: columns.n].tolist()
    assert set(rows) == has.keys() | used.keys()
    assert len(rows) == len(set(rows))
    assert rows == sorted(rows) or not columns.ascending, "ascending, but the rows are not"
    odd = sum(inventory.step_size != 1 for inventory in has.values())
    assert columns.stepped == odd
    for row in range(40):
        inventory = has.get(row)
        assert columns.inventory(row) == inventory
        assert columns.used_by(row) == used.get(row, 0)
        slot = columns.slot(row)
        if inventory is not None:
            assert columns.capacity.item(slot) == limited(inventory.capacity)
        elif slot >= 0:
            assert columns.capacity.item(slot) == 0
    asked = np.arange(40, dtype=np.int32)
    assert columns.slots(asked).tolist() == [columns.slot(row) for row in range(40)]


def fits(inventory: Inventory | None, used: int, amount: int) -> bool:
    return (
        inventory is not None
        and used + amount <= inventory.capacity
        and inventory.min_unit <= amount <= inventory.max_unit
        and amount % inventory.step_size == 0
    )


def assert_fits(
    columns: InventoryColumns, has: dict[int, Inventory], used: dict[int, int], amount: int
) -> None:
    """One slot, all slots and asked-for slots are judged alike, and as Placement has it."""
    expected = {row for row in range(40) if fits(has.get(row), used.get(row, 0), amount)}
    assert set(columns.row[columns.fitting(amount)].tolist()) == expected
    slots = columns.slots(np.arange(40, dtype=np.int32))
    assert set(np.flatnonzero(columns.fits_in(slots, amount)).tolist()) == expected
    for rows in (np.arange(99), np.arange(2)):  # more than there are slots, and fewer
        assert set(rows[columns.fits_of(rows, amount)].tolist()) == expected & set(rows.tolist())
    at = {columns.row.item(slot) for slot in range(columns.n) if columns.fits_at(slot, amount)}
    assert at == expected
    most = columns.largest_in(slots).tolist()
    # Where units and steps suit an amount, the most alone tells whether it fits.
    suiting = {row for row, each in has.items() if amount >= each.min_unit and amount % each.step_size == 0}
    assert {row for row in suiting if amount <= most[row]} == expected


@settings(deadline=None)
@given(st.lists(OPERATIONS, max_size=30), st.booleans())
def test_columns_are_equal_to_a_dictionary_of_inventories(
    operations: list[tuple[object, ...]], copied: bool
) -> None:
    columns = InventoryColumns()
    has: dict[int, Inventory] = {}
    used: dict[int, int] = {}
    for operation, row, *argument in operations:
        assert isinstance(row, int)
        original, before = columns, (dict(has), dict(used))
        if copied:
            columns = columns.copy()
        if operation == "put":
            (inventory,) = argument
            assert isinstance(inventory, Inventory)
            columns.put(row, inventory)
            has[row] = inventory
        elif operation == "remove":
            columns.remove(row)
            has.pop(row, None)
        else:
            (amount,) = argument
            assert isinstance(amount, int)
            if used.get(row, 0) + amount < 0:
                with pytest.raises(Inconsistent):
                    columns.use(row, amount)
            else:
                columns.use(row, amount)
                used[row] = used.get(row, 0) + amount
                if not used[row]:
                    del used[row]
        assert_same(columns, has, used)
        if copied:
            assert_same(original, *before)
    for amount in AMOUNTS:
        assert_fits(columns, has, used, amount)


def test_columns_ascend_again_once_they_were_empty() -> None:
    columns = InventoryColumns()
    for row in (2, 1):
        columns.put(row, Inventory(1))
    assert not columns.ascending
    for row in (2, 1):
        columns.remove(row)
    columns.put(5, Inventory(1))
    assert columns.ascending


def test_a_provider_without_the_class_fits_nothing_and_warns_of_nothing() -> None:
    """The unused room behind the last slot once had a step of 0, which -1 led to."""
    columns = InventoryColumns()
    columns.put(0, Inventory(8, step_size=2))
    assert columns.fits_in(np.array([-1, 0], dtype=np.int32), 2).tolist() == [False, True]


def test_use_survives_the_removal_of_its_inventory() -> None:
    columns = InventoryColumns()
    columns.put(3, Inventory(8, step_size=2))
    columns.use(3, 4)
    columns.remove(3)
    assert columns.inventory(3) is None
    assert columns.used_by(3) == 4
    assert not columns.fits_at(columns.slot(3), 1)
    columns.put(3, Inventory(5))
    assert columns.used_by(3) == 4
    assert columns.fits_at(columns.slot(3), 1)
    assert not columns.fits_at(columns.slot(3), 2)
