"""Names of device profiles in flavors, and of their request groups.

Source: ``nova/accelerator/cyborg.py``.
"""

from typing import Final

PROFILE: Final = "accel:device_profile"
"""The extra spec of a flavor that names a device profile."""

SUFFIX: Final = "device_profile_"
"""Prefix of the suffix of a device profile's request group. The number of the group in its profile follows,
and then the id of the port if the profile is a port's."""
