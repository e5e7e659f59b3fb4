"""The rule that decides whether an amount fits: its parts, and that no other code decides it."""

import ast
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import roost
from roost.fleet.fits import fits, has_room, largest_amount, meets_units, violated_unit
from roost.model.inventory import Inventory
from support import oracle
from support.oracle import Provider

amounts = st.integers(1, 12)
limits = st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 4))
LIMITS = {"capacity", "min_unit", "max_unit", "step_size"}


@settings(deadline=None)
@given(amounts, st.integers(0, 12), st.integers(1, 12), st.integers(0, 12), limits)
def test_it_is_the_rule_of_placement(
    amount: int, used: int, total: int, reserved: int, units: tuple[int, int, int]
) -> None:
    inventory = Inventory(total, reserved, *units, allocation_ratio=1.5)
    expected = oracle.fits(Provider(None, {"VCPU": inventory}, {"VCPU": used}), "VCPU", amount)
    assert fits(amount, used, inventory.capacity, *units) is expected


@settings(deadline=None)
@given(amounts, st.integers(0, 12), st.integers(-3, 12), limits)
def test_it_is_room_and_units(amount: int, used: int, capacity: int, units: tuple[int, int, int]) -> None:
    room, allowed = has_room(amount, capacity - used), meets_units(amount, *units)
    assert fits(amount, used, capacity, *units) is (room and allowed)
    assert allowed is (violated_unit(amount, *units) is None)


@settings(deadline=None)
@given(amounts, st.lists(st.tuples(st.integers(0, 12), st.integers(-3, 12), limits)))
def test_columns_are_judged_as_single_numbers_are(
    amount: int, rows: list[tuple[int, int, tuple[int, int, int]]]
) -> None:
    table = np.array([(used, capacity, *units) for used, capacity, units in rows]).reshape(len(rows), 5)
    expected = [fits(amount, used, capacity, *units) for used, capacity, units in rows]
    assert fits(amount, *table.T).tolist() == expected


@settings(deadline=None)
@given(amounts, st.integers(-3, 12), st.integers(1, 12))
@example(1, -1, 5)
def test_the_largest_amount_is_the_last_that_room_and_max_unit_allow(
    amount: int, free: int, max_unit: int
) -> None:
    allowed = has_room(amount, free) and meets_units(amount, 1, max_unit, 1)
    assert allowed == (amount <= largest_amount(free, max_unit))


def test_the_first_violated_unit_is_named() -> None:
    assert violated_unit(9, 2, 8, 2) == "max_unit"
    assert violated_unit(1, 2, 8, 2) == "min_unit"
    assert violated_unit(3, 2, 8, 2) == "step_size"
    assert violated_unit(4, 2, 8, 2) is None


def test_no_other_code_compares_an_amount_with_an_inventory() -> None:
    package = Path(roost.__file__).parent
    found = {
        f"{path.relative_to(package)}:{line}"
        for path in package.rglob("*.py")
        if path != package / "fleet" / "fits.py"
        for line in comparisons_with_limits(path.read_text())
    }
    assert found == set(), "these should call roost.fleet.fits"


def test_the_check_of_the_code_finds_what_it_should() -> None:
    assert comparisons_with_limits("used + amount <= stock.capacity.item(slot)")
    assert comparisons_with_limits("min_unit <= amount")
    assert comparisons_with_limits("amount > inventory.max_unit")
    assert comparisons_with_limits("amount % columns.step_size[slots] == 0")
    assert not comparisons_with_limits("inventory.capacity < 0")
    assert not comparisons_with_limits("min_unit > self.min_unit or max_unit < self.max_unit")


def comparisons_with_limits(code: str) -> list[int]:
    """The lines that compare an amount, or the remainder of one, with a limit of an inventory.

    Limits may be compared with each other and with constants.
    """
    lines = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        if isinstance(node.ops[0], ast.Eq | ast.NotEq):
            # Equality is no comparison with a limit, but for that of a remainder.
            if not (isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod)):
                continue
            sides = [node.left.left, node.left.right]
        kinds = {"limit" if names_in(side) & LIMITS else "amount" for side in sides if names_in(side)}
        if kinds == {"limit", "amount"}:
            lines.append(node.lineno)
    return lines


def names_in(node: ast.expr) -> set[str]:
    """The names and attributes in an expression."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }
