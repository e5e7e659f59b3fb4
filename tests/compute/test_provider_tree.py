"""A provider tree: parents before children, found by name."""

import pytest

from roost.compute.errors import NoSuchProvider
from roost.compute.provider_tree import ProviderTree, provider_uuid
from roost.model.inventory import Inventory


def names(tree: ProviderTree) -> list[str]:
    return [provider.name for provider in tree]


def test_same_name_has_the_same_uuid_after_every_start() -> None:
    assert ProviderTree("host").root.uuid == ProviderTree("host").root.uuid == provider_uuid("host")
    assert ProviderTree("host", "given").root.uuid == "given"


def test_children_come_after_their_parents() -> None:
    tree = ProviderTree("host")
    tree.new_child("numa", "host")
    gpu = tree.new_child("gpu", "numa", "gpu-uuid")
    assert names(tree) == ["host", "numa", "gpu"]
    assert (gpu.uuid, gpu.parent) == ("gpu-uuid", tree.data("numa").uuid)


def test_removed_provider_takes_all_below_it_along() -> None:
    tree = ProviderTree("host")
    tree.new_child("numa", "host")
    tree.new_child("gpu", "numa")
    tree.new_child("nic", "host")
    tree.remove("numa")
    assert names(tree) == ["host", "nic"]
    assert "gpu" not in tree


def test_name_that_is_taken_is_refused() -> None:
    tree = ProviderTree("host")
    with pytest.raises(ValueError, match="host has a provider host already"):
        tree.new_child("host", "host")


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
    with pytest.raises(NoSuchProvider, match="host has no provider gpu"):
        ask(ProviderTree("host"))


def test_updates_replace_what_was_there() -> None:
    tree = ProviderTree("host")
    inventory = {"VCPU": Inventory(4)}
    tree.update_inventory("host", {"DISK_GB": Inventory(1)})
    tree.update_inventory("host", inventory)
    tree.update_traits("host", ["A"])
    tree.update_traits("host", ["B"])
    tree.update_aggregates("host", ["agg"])
    inventory.clear()
    assert tree.root.inventory == {"VCPU": Inventory(4)}, "the tree keeps a copy"
    assert (tree.root.traits, tree.root.aggregates) == (frozenset("B"), frozenset(["agg"]))
