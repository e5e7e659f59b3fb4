"""Standard resource classes and traits, and custom names."""

import pytest

from roost.model.vocabulary import (
    DISABLED_TRAIT,
    SHARING_TRAIT,
    is_custom,
    standard_resource_classes,
    standard_traits,
)


@pytest.mark.parametrize("name", ["CUSTOM_A", "CUSTOM_GPU_2", "CUSTOM__", "CUSTOM_" + "A" * 248])
def test_valid_custom_names(name: str) -> None:
    assert is_custom(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "CUSTOM_",
        "VCPU",
        "custom_a",
        "CUSTOM_a",
        "CUSTOM_A-B",
        "CUSTOM_A\n",
        "CUSTOM_É",
        "CUSTOM_" + "A" * 249,
    ],
)
def test_invalid_custom_names(name: str) -> None:
    assert not is_custom(name)


def test_standard_names_are_unique_and_not_custom() -> None:
    classes, traits = standard_resource_classes(), standard_traits()
    assert classes[:3] == ("VCPU", "MEMORY_MB", "DISK_GB")
    assert {SHARING_TRAIT, DISABLED_TRAIT} <= set(traits)
    assert len(set(classes)) == len(classes)
    assert list(traits) == sorted(set(traits))
    assert not any(is_custom(name) for name in (*classes, *traits))
