"""The stock of one class against a dictionary of inventories and use."""

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


def assert_same(stock: InventoryColumns, has: dict[int, Inventory], used: dict[int, int]) -> None:
    rows = stock.row[: stock.n].tolist()
    assert set(rows) == has.keys() | used.keys()
    assert len(rows) == len(set(rows))
    assert rows == sorted(rows) or not stock.ascending, "ascending, but the rows are not"
    odd = sum(inventory.step_size != 1 for inventory in has.values())
    assert stock.stepped == odd
    for row in range(40):
        inventory = has.get(row)
        assert stock.inventory(row) == inventory
        assert stock.used_by(row) == used.get(row, 0)
        slot = stock.slot(row)
        if inventory is not None:
            assert stock.capacity.item(slot) == limited(inventory.capacity)
        elif slot >= 0:
            assert stock.capacity.item(slot) == 0
    asked = np.arange(40, dtype=np.int32)
    assert stock.slots(asked).tolist() == [stock.slot(row) for row in range(40)]


def fits(inventory: Inventory | None, used: int, amount: int) -> bool:
    return (
        inventory is not None
        and used + amount <= inventory.capacity
        and inventory.min_unit <= amount <= inventory.max_unit
        and amount % inventory.step_size == 0
    )


def assert_fits(
    stock: InventoryColumns, has: dict[int, Inventory], used: dict[int, int], amount: int
) -> None:
    """One slot, all slots and asked-for slots are judged alike, and as Placement has it."""
    expected = {row for row in range(40) if fits(has.get(row), used.get(row, 0), amount)}
    assert set(stock.row[stock.fitting(amount)].tolist()) == expected
    slots = stock.slots(np.arange(40, dtype=np.int32))
    assert set(np.flatnonzero(stock.fits_in(slots, amount)).tolist()) == expected
    at = {stock.row.item(slot) for slot in range(stock.n) if stock.fits_at(slot, amount)}
    assert at == expected
    most = stock.largest_in(slots).tolist()
    # Where units and steps suit an amount, the most alone tells whether it fits.
    suiting = {row for row, each in has.items() if amount >= each.min_unit and amount % each.step_size == 0}
    assert {row for row in suiting if amount <= most[row]} == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(OPERATIONS, max_size=30), st.booleans())
def test_is_a_dictionary_of_inventories(operations: list[tuple[object, ...]], copied: bool) -> None:
    stock = InventoryColumns()
    has: dict[int, Inventory] = {}
    used: dict[int, int] = {}
    for operation, row, *argument in operations:
        assert isinstance(row, int)
        original, before = stock, (dict(has), dict(used))
        if copied:
            stock = stock.copy()
        if operation == "put":
            (inventory,) = argument
            assert isinstance(inventory, Inventory)
            stock.put(row, inventory)
            has[row] = inventory
        elif operation == "remove":
            stock.remove(row)
            has.pop(row, None)
        else:
            (amount,) = argument
            assert isinstance(amount, int)
            if used.get(row, 0) + amount < 0:
                with pytest.raises(Inconsistent):
                    stock.use(row, amount)
            else:
                stock.use(row, amount)
                used[row] = used.get(row, 0) + amount
                if not used[row]:
                    del used[row]
        assert_same(stock, has, used)
        if copied:
            assert_same(original, *before)
    for amount in AMOUNTS:
        assert_fits(stock, has, used, amount)


def test_is_ascending_again_once_it_was_empty() -> None:
    stock = InventoryColumns()
    for row in (2, 1):
        stock.put(row, Inventory(1))
    assert not stock.ascending
    for row in (2, 1):
        stock.remove(row)
    stock.put(5, Inventory(1))
    assert stock.ascending


def test_a_provider_without_the_class_fits_nothing_and_warns_of_nothing() -> None:
    """The unused room behind the last slot once had a step of 0, which -1 led to."""
    stock = InventoryColumns()
    stock.put(0, Inventory(8, step_size=2))
    assert stock.fits_in(np.array([-1, 0], dtype=np.int32), 2).tolist() == [False, True]


def test_what_is_in_use_survives_that_its_inventory_goes_and_comes() -> None:
    stock = InventoryColumns()
    stock.put(3, Inventory(8, step_size=2))
    stock.use(3, 4)
    stock.remove(3)
    assert stock.inventory(3) is None
    assert stock.used_by(3) == 4
    assert not stock.fits_at(stock.slot(3), 1)
    stock.put(3, Inventory(5))
    assert stock.used_by(3) == 4
    assert stock.fits_at(stock.slot(3), 1)
    assert not stock.fits_at(stock.slot(3), 2)
