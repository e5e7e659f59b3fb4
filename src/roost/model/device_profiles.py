"""The names by which device profiles are asked for, and their request groups known.

Source: ``nova/accelerator/cyborg.py``.
"""

from typing import Final

PROFILE: Final = "accel:device_profile"
"""The extra spec of a flavor that names a device profile."""

SUFFIX: Final = "device_profile_"
"""The suffix of a request group begins with it; then come the number of the group in its profile, and the id
of the port whose profile it is, if it is that of a port."""
