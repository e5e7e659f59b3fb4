"""The role of a filter in a request: whether it is asked, and whether its results are cached."""

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple

from roost.scheduler.plugins.declarations import has_domain, is_keyed, looks_at, names_hosts
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Filter, Weigher


class Role(Enum):
    """The role of a filter in one request."""

    SILENT = "silent"
    """The filter does not apply."""
    CACHED = "cached"
    """Its results are part of the equivalence class."""
    VARIED = "varied"
    """Its masks are cached by a key with too many values for a class each, such as a project."""
    ASKED = "asked"
    """The filter is asked for this request."""


class FilterRole(NamedTuple):
    """A filter with its role in one request. ``again``: it is applied after each claim, too."""

    plugin: Filter
    role: Role
    key: Hashable
    again: bool


def is_cacheable(plugin: Filter | Weigher) -> bool:
    """Return whether a plugin's result for a host is valid until the host changes.

    Other plugins are asked at each decision. So is a weigher that looks at the request: a column of numbers
    for each of its keys would take as much memory as an equivalence class.
    """
    looks = looks_at(plugin)
    if looks is None or Looks.MEMBERS in looks or has_domain(plugin) or names_hosts(plugin):
        return False
    return not (is_keyed(plugin) and hasattr(plugin, "raw"))
