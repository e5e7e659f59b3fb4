"""Standard resource classes and traits, and the form that custom names must have.

The standard names are the field's own libraries, os-resource-classes and os-traits; a deployment adds
names of its own under ``CUSTOM_``.
"""

import re
from functools import cache
from typing import Final

import os_resource_classes
import os_traits

MAX_INT: Final = 2**31 - 1
"""Largest amount, total, unit or step that the Placement API takes."""

MAX_NAME: Final = 255
"""Longest resource class or trait name."""

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"
"""A provider with this trait serves every tree that has a provider in one of its aggregates."""

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
"""Set on a compute host's root provider while its service is disabled."""

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


@cache
def standard_resource_classes() -> tuple[str, ...]:
    """The standard resource classes, in the order of os-resource-classes (their ids upstream)."""
    return tuple(os_resource_classes.STANDARDS)


@cache
def standard_traits() -> tuple[str, ...]:
    """The standard traits of the installed os-traits, sorted."""
    return tuple(sorted(os_traits.get_traits()))


def is_custom(name: str) -> bool:
    """Whether ``name`` has the form of a custom resource class or trait, ``CUSTOM_[A-Z0-9_]+``."""
    return len(name) <= MAX_NAME and _CUSTOM.fullmatch(name) is not None
