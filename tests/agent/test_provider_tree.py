"""A provider tree: what Nova's does not have, and what its rules mean. See tests/nova for the comparison."""

from collections.abc import Callable

import pytest

from roost.agent.errors import NoSuchProvider
from roost.agent.protocol.types import ProviderState
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from support.steps import lines_of


def tree_of_host() -> ProviderTree:
    tree = ProviderTree()
    tree.new_root("host", "uuid-of-host")
    return tree


def names(tree: ProviderTree) -> list[str]:
    return [tree.data(each).name for each in tree.get_provider_uuids()]


def test_child_without_a_uuid_has_the_same_one_after_every_start() -> None:
    assert tree_of_host().new_child("gpu", "host") == provider_uuid("gpu")


def test_child_is_moved_with_all_below_it_and_never_below_itself() -> None:
    tree = tree_of_host()
    for name, parent in (("numa", "host"), ("gpu", "host"), ("vf", "gpu")):
        tree.put_child(name, parent)
    tree.put_child("gpu", "numa")
    assert names(tree) == ["host", "numa", "gpu", "vf"]
    for name, parent in (("numa", "vf"), ("numa", "numa"), ("host", "numa")):
        with pytest.raises(ValueError, match=f"provider {name} cannot be moved below {parent}"):
            tree.move(name, parent)


def test_root_that_gets_another_name_is_found_by_it_alone() -> None:
    tree = tree_of_host()
    tree.put_root("renamed", "uuid-of-host")
    assert "renamed" in tree
    assert "host" not in tree
    tree.put_root("other", "uuid-of-other")
    assert names(tree) == ["renamed", "other"]


def test_removed_providers_are_noted_until_they_are_made_again() -> None:
    tree = tree_of_host()
    gpu = tree.new_child("gpu", tree.new_child("numa", "host"))
    tree.remove("numa")
    assert tree.removed == {provider_uuid("numa"), gpu}
    tree.new_child("gpu", "host")
    assert tree.removed == {provider_uuid("numa")}


@pytest.mark.parametrize(
    "ask",
    [
        lambda tree: tree.data("gpu"),
        lambda tree: tree.new_child("x", "gpu"),
        lambda tree: tree.remove("gpu"),
        lambda tree: tree.update_inventory("gpu", {}),
        lambda tree: tree.update_traits("gpu", ()),
        lambda tree: tree.update_aggregates("gpu", ()),
    ],
)
def test_unknown_provider_is_named(ask) -> None:
    with pytest.raises(NoSuchProvider, match="there is no provider gpu"):
        ask(tree_of_host())


def test_a_record_that_lacks_fields_changes_none_of_them_unless_it_changes_another() -> None:
    tree = tree_of_host()
    tree.update_inventory("host", {"VCPU": Inventory(8, allocation_ratio=16.0)})
    assert not tree.update_inventory("host", {"VCPU": {"total": 8}})
    assert tree.data("host").inventory["VCPU"]["allocation_ratio"] == 16.0
    [told] = tree.desired()
    assert told.inventory == {"VCPU": Inventory(8, allocation_ratio=16.0)}
    assert (told.traits, told.aggregates) == (None, None)
    assert tree.update_inventory("host", {"VCPU": {"total": 9}})
    [told] = tree.desired()
    assert (told.inventory, told.fields) == ({"VCPU": Inventory(9)}, {"VCPU": {"total"}})


def test_provider_that_is_taken_out_and_made_again_has_nothing_but_what_is_told_then() -> None:
    tree = ProviderTree.of(
        [
            ProviderState(uuid="uuid-of-host", name="host", parent=None, generation=1),
            ProviderState(
                uuid="gpu", name="gpu", parent="uuid-of-host", generation=1, traits=frozenset({"CUSTOM_A"})
            ),
        ]
    )
    tree.remove("gpu")
    tree.new_child("gpu", "host", uuid="gpu")
    told = next(each for each in tree.desired() if each.uuid == "gpu")
    assert (told.inventory, told.traits, told.aggregates) == ({}, frozenset(), frozenset())
    assert tree.removed == set()


def test_tree_keeps_copies_and_gives_copies() -> None:
    tree = tree_of_host()
    inventory = {"VCPU": {"total": 4}}
    tree.update_inventory("host", inventory)
    inventory["VCPU"]["total"] = 5
    tree.data("host").inventory.clear()
    tree.data("host").traits.add("A")
    assert tree.data("host").inventory == {"VCPU": {"total": 4}}
    assert tree.data("host").traits == set()


def states(number: int, parent_of: Callable[[int], int]) -> list[ProviderState]:
    """The state of a root ``p0`` and of providers below it."""
    return [
        ProviderState(
            uuid=f"p{each}",
            name=f"name{each}",
            parent=f"p{parent_of(each)}" if each else None,
            generation=1,
            inventories={},
            traits=(),
            aggregates=(),
        )
        for each in range(number)
    ]


@pytest.mark.parametrize("parent_of", [lambda _: 0, lambda each: each - 1], ids=["wide", "deep"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_tree_of_thousands_is_read_with_steps_as_many_as_its_providers(
    parent_of: Callable[[int], int], reverse: bool
) -> None:
    def read(number: int) -> list[str]:
        there = states(number, parent_of)
        return names(ProviderTree.of(there[::-1] if reverse else there))

    assert len(read(3_000)) == 3_000
    assert lines_of(lambda: read(600)) < 2.5 * lines_of(lambda: read(300))


def test_providers_that_are_parents_of_each_other_change_nothing() -> None:
    tree = tree_of_host()
    circle = [
        {"uuid": f"u{each}", "name": f"n{each}", "parent_provider_uuid": f"u{1 - each}"} for each in (0, 1)
    ]
    with pytest.raises(ValueError, match="parents of each other: u0, u1"):
        tree.populate_from_iterable([{"uuid": "other", "name": "other"}, *circle])
    assert names(tree) == ["host"]
