"""What part each filter has in a request: whether it is asked, and whether its answers are kept."""

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple

from roost.scheduler.plugins.declarations import has_domain, is_keyed, looks_at, names_hosts
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Filter, Weigher


class Role(Enum):
    """The part of a filter in one request."""

    SILENT = "silent"
    """It has nothing to say."""
    KEPT = "kept"
    """Its answers are part of the shape."""
    VARIED = "varied"
    """Its answers are kept, by a key that has too many values for shapes to hang on it (a project)."""
    ASKED = "asked"
    """It is asked for this request."""


class Judged(NamedTuple):
    """A filter with its part in one request. ``again``: it is asked after each claim, too."""

    plugin: Filter
    role: Role
    key: Hashable
    again: bool


def is_kept(plugin: Filter | Weigher) -> bool:
    """Whether a plugin's answer on a host holds until the host changes; others are asked at each decision.

    A weigher that looks at the request is asked at each decision that it judges: one column of numbers for
    each key would cost as much memory as a shape.
    """
    looks = looks_at(plugin)
    if looks is None or Looks.MEMBERS in looks or has_domain(plugin) or names_hosts(plugin):
        return False
    return not (is_keyed(plugin) and hasattr(plugin, "raw"))
