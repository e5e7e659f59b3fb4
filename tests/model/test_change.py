"""Changes: their inverse, and their JSON form, in which the ledger stores them."""

import msgspec
import pytest

from roost.model.allocation import Consumer
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
    WordAnnounced,
    inverse,
)
from roost.model.inventory import Inventory

CHANGES: list[Change] = [
    ProviderChanged("p", 3, None, ProviderFacts("name", "parent", 0)),
    ProviderChanged("p", 3, ProviderFacts("name", None, 4), ProviderFacts("other", "q", 5)),
    GenerationChanged("p", 1, 2),
    InventoryChanged("p", {}, {"VCPU": Inventory(4, 1, 2, 3, 4, 3.4e38)}),
    TraitsChanged("p", ("A",), ("A", "B")),
    AggregatesChanged("p", (), ("agg",)),
    AllocationsChanged(
        "c", None, Consumer("c", "project", "user", 1, "INSTANCE"), {"p": {"VCPU": 1}}, {"q": {"VCPU": 2}}
    ),
    ResourceClassChanged("CUSTOM_X", None, 1000),
    TraitChanged("CUSTOM_X", 7, None),
    WordAnnounced(0, 12345),
]


def test_the_examples_cover_every_kind_of_change() -> None:
    assert {type(change) for change in CHANGES} == set(Change.__args__)


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_inverse_swaps_before_and_after(change: Change) -> None:
    back = inverse(change)
    assert (back.before, back.after) == (change.after, change.before)
    if isinstance(change, AllocationsChanged):
        assert isinstance(back, AllocationsChanged)
        assert (back.held, back.holds) == (change.holds, change.held)
    assert inverse(back) == change


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_a_change_survives_a_round_trip_through_json(change: Change) -> None:
    text = msgspec.json.encode(change)
    assert msgspec.json.decode(text, type=Change) == change
