"""What a reshape may change of a claim, and what the row of its instance says then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.reshape import followed, moved_mappings, totals, why_not
from roost.model.spec import Selection

TREE = ("root", "numa0", "numa1", "gpu")
CLASSES = ("VCPU", "MEMORY_MB", "VGPU")

claims = st.dictionaries(
    st.sampled_from(TREE),
    st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 9), min_size=1),
    min_size=1,
)


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"numa0": {"VCPU": 2}, "pool": {"DISK_GB": 5}}, None),
        ({"numa0": {"VCPU": 1}, "numa1": {"PCPU": 1}, "pool": {"DISK_GB": 5}}, None),
        ({"numa0": {"VCPU": 3}, "pool": {"DISK_GB": 5}}, "it holds 5 DISK_GB, 2 VCPU before and"),
        ({"root": {"VCPU": 2}}, "other trees"),
        ({"root": {"VCPU": 2}, "other": {"DISK_GB": 5}}, "other trees"),
        (
            {"root": {"VCPU": 2, "VGPU": 1}, "pool": {"DISK_GB": 5}},
            "5 DISK_GB, 2 VCPU, 1 VGPU after",
        ),
    ],
)
def test_reshape_neither_adds_nor_takes_nor_touches_other_trees(after, reason) -> None:
    said = why_not({"root": {"VCPU": 2}, "pool": {"DISK_GB": 5}}, after, TREE)
    assert said is None if reason is None else reason in (said or "")


@pytest.mark.parametrize(
    ("mappings", "after", "moved"),
    [
        ({"": ["root"]}, {"root": {"VCPU": 2}, "gpu": {"VGPU": 1}}, {"": ["root", "gpu"]}),
        ({"": ["root"]}, {"numa0": {"VCPU": 2}, "gpu": {"VGPU": 1}}, {"": ["numa0", "gpu"]}),
        (
            {"": ["root"], "_NET": ["pool"]},
            {"root": {"VCPU": 2, "VGPU": 1}},
            {"": ["root"], "_NET": ["pool"]},
        ),
        ({"": ["root"]}, {"root": {"PCPU": 2, "VGPU": 1}}, {"": ["root"]}),
    ],
)
def test_group_goes_where_its_amounts_went(mappings, after, moved) -> None:
    assert moved_mappings(mappings, {"root": {"VCPU": 2, "VGPU": 1}}, after) == moved


@given(claims, st.lists(st.sampled_from(TREE), min_size=12, max_size=12))
def test_row_that_follows_names_all_providers_of_its_claim(before, targets) -> None:
    goes = dict(zip(((p, c) for p in TREE for c in CLASSES), targets, strict=True))
    after: dict[str, dict[str, int]] = {}
    for provider, resources in before.items():
        for name, amount in resources.items():
            there = after.setdefault(goes[provider, name], {})
            there[name] = there.get(name, 0) + amount
    assert why_not(before, after, TREE) is None
    assert totals(after) == totals(before)
    selection = Selection("host", "root", "cell", before, {"": [*before]}, 0.5, generation=1)
    row = followed(selection, after, 2)
    assert (row.allocations, row.generation) == (after, 2)
    assert {*row.mappings[""]} == {*after}
