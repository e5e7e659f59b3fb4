"""The capacity of an inventory."""

import pytest

from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        (Inventory(8), 8),
        (Inventory(8, reserved=3), 5),
        (Inventory(8, reserved=8), 0),
        (Inventory(8, allocation_ratio=16.0), 128),
        (Inventory(7, allocation_ratio=0.5), 3),
        (Inventory(10, reserved=1, allocation_ratio=1.5), 13),
        (Inventory(MAX_INT), MAX_INT),
        (Inventory(MAX_INT, allocation_ratio=3.4e38), int(MAX_INT * 3.4e38)),
    ],
)
def test_capacity_is_the_unreserved_total_times_the_ratio_rounded_down(
    inventory: Inventory, capacity: int
) -> None:
    assert inventory.capacity == capacity


def test_defaults_are_those_of_placement() -> None:
    assert Inventory(1) == Inventory(1, 0, 1, 2147483647, 1, 1.0)
