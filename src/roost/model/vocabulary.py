"""Standard resource classes and traits, and the syntax of custom names.

Source: the standard names come from the libraries os-resource-classes and os-traits. A deployment adds its
own names with the prefix ``CUSTOM_``.
"""

import re
from functools import cache
from typing import Final

import os_resource_classes
import os_traits

MAX_INT: Final = 2**31 - 1
"""Largest amount, total, unit or step that the Placement API accepts."""

MAX_NAME: Final = 255
"""Characters of the longest resource class or trait name."""

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"
"""Trait of a sharing provider, which serves every tree with a provider in one of its aggregates."""

NODE_TRAIT: Final = "COMPUTE_NODE"
"""Trait of every compute node's root provider; root providers of other services lack it."""

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
"""Trait of a compute host's root provider while its compute service is disabled."""

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


@cache
def standard_resource_classes() -> tuple[str, ...]:
    """Return the standard resource classes in the order of os-resource-classes, that of upstream's ids."""
    return tuple(os_resource_classes.STANDARDS)


@cache
def standard_traits() -> tuple[str, ...]:
    """Return the traits of the installed os-traits, sorted."""
    return tuple(sorted(os_traits.get_traits()))


def is_custom(name: str) -> bool:
    """Return whether a name is a valid custom name: ``CUSTOM_[A-Z0-9_]+``, at most `MAX_NAME` characters."""
    return len(name) <= MAX_NAME and _CUSTOM.fullmatch(name) is not None
