"""Icons: symbols of one file."""

import htpy as h

from roost.dashboard.assets import asset

_USE = h.Element("use")


def icon(name: str) -> h.Element:
    """Return an icon, which says nothing to readers of the text. Its name is an id of ``icons.svg``."""
    return h.svg(".icon", aria_hidden="true")[_USE(href=f"{asset('icons.svg')}#{name}")]
