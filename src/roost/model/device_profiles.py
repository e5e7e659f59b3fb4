"""Names of device profiles in flavors, and of their request groups.

Source: ``nova/accelerator/cyborg.py``.
"""

import re
from typing import Final

PROFILE: Final = "accel:device_profile"
"""The extra spec of a flavor that names a device profile."""

SUFFIX: Final = "device_profile_"
"""Prefix of the suffix of a device profile's request group. The number of the group in its profile follows,
and then the id of the port if the profile is a port's."""

_OF_FLAVOR: Final = re.compile(rf"{SUFFIX}\d+")


def is_of_flavor(suffix: str) -> bool:
    """Return whether a suffix is that of a group of a flavor's device profile, and not of a port's."""
    return _OF_FLAVOR.fullmatch(suffix) is not None
