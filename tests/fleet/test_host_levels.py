"""Levels of hosts: the amounts of whole trees, and one small number for the share in use."""

import numpy as np
from hypothesis import given, settings
from hypothesis.strategies import integers

from roost.fleet.host_levels import LEVELS, amounts_of_tree, levels, tree_uses
from roost.model.inventory import Inventory
from support import oracle
from support.fleets import CLASSES, fleet_of, worlds
from support.oracle import Provider, World


@settings(deadline=None)
@given(worlds())
def test_amounts_are_those_of_plain_counting_over_each_tree(world: World) -> None:
    fleet = fleet_of(world)
    for name in CLASSES:
        uses = tree_uses(fleet, name)
        assert [fleet.uuid(row) for row in uses.roots.tolist()] == [
            uuid for row in fleet.rows().tolist() for uuid in [fleet.uuid(row)] if world[uuid].parent is None
        ]
        for at, row in enumerate(uses.roots.tolist()):
            capacity, used = oracle.tree_totals(world, name, fleet.uuid(row))
            assert (uses.capacity[at], uses.used[at]) == (max(capacity, 0), used)
            held = [fleet.inventories(each).get(name) for each in fleet.subtree(row)]
            assert uses.total[at] == sum(each.total for each in held if each is not None)
            assert uses.reserved[at] == sum(each.reserved for each in held if each is not None)


@settings(deadline=None)
@given(worlds())
def test_the_amounts_of_one_tree_are_those_of_the_whole_fleet(world: World) -> None:
    fleet = fleet_of(world)
    for name in CLASSES:
        for root, *amounts in zip(*tree_uses(fleet, name), strict=True):
            found = amounts_of_tree(fleet, int(root)).get(name, (0, 0, 0, 0))
            assert [*found] == amounts


def test_a_class_that_no_provider_has_is_0_everywhere() -> None:
    fleet = fleet_of({"a": Provider(None, {"VCPU": Inventory(4)})})
    uses = tree_uses(fleet, "CUSTOM_FPGA")
    assert [column.tolist() for column in uses] == [[fleet.row("a")], [0], [0], [0], [0]]


@given(integers(3, 256), integers(1, 2**62), integers(0, 2**63 - 1))
def test_a_level_tells_empty_from_little_and_full_from_nearly(n: int, capacity: int, used: int) -> None:
    level = int(levels(np.array([capacity]), np.array([used]), n)[0])
    assert (level == 0) == (used == 0)
    assert (level == n - 1) == (used >= capacity)
    assert abs(min(used / capacity, 1) - (level - 0.5) / (n - 2)) <= 1 / (n - 2) + 1e-9


def test_more_use_is_never_a_lower_level() -> None:
    used = np.arange(2000)
    found = levels(np.full(2000, 1500), used)
    assert found.dtype == np.uint8
    assert (np.diff(found.astype(int)) >= 0).all()
    assert set(found.tolist()) == set(range(LEVELS))


def test_a_host_without_capacity_is_empty_unless_it_is_used() -> None:
    assert levels(np.array([0, 0]), np.array([0, 3])).tolist() == [0, LEVELS - 1]
