"""The declarations of filters and weighers, with defaults: see `roost.scheduler.plugins.plugins`."""

import math
from collections.abc import Hashable, Sequence
from typing import TypeVar, cast

from roost.fleet.columns import Int64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import SchedulingRequest

F = TypeVar("F", bound=Filter)


def looks_at(plugin: object) -> Looks | None:
    """Return the parts of a host that a plugin reads; None if it is foreign."""
    looks = getattr(plugin, "looks_at", None)
    return looks if isinstance(looks, Looks) else None


def looks_at_trees(plugin: object) -> bool:
    """Return whether a plugin declares that it reads the hosts' provider trees."""
    return Looks.TREE in (looks_at(plugin) or Looks.NOTHING)


def key_of(plugin: object, request: SchedulingRequest) -> Hashable | None:
    """Return all parts of the request that a plugin's results depend on; None if it does not apply."""
    key = getattr(plugin, "key", None)
    return () if key is None else cast(Hashable | None, key(request))


def is_keyed(plugin: object) -> bool:
    """Return whether a plugin reads the request."""
    return hasattr(plugin, "key")


def depends_on_claims(plugin: object) -> bool:
    """Return whether a filter is called again after each claim of the run."""
    return bool(getattr(plugin, "depends_on_claims", False))


def runs_on_rebuild(plugin: object) -> bool:
    """Return whether a filter is called for the rebuild of an instance on its host."""
    return bool(getattr(plugin, "runs_on_rebuild", False))


def names_hosts(plugin: object) -> bool:
    """Return whether a filter has ``named`` instead of ``mask``."""
    return hasattr(plugin, "named")


def names_by_own_members(plugin: object) -> bool:
    """Return whether a filter names excluded hosts, and each by the group members on that host alone."""
    return bool(getattr(plugin, "names_by_own_members", False))


def has_domain(plugin: object) -> bool:
    """Return whether the result for a host depends on a group of hosts."""
    return hasattr(plugin, "domain")


def domain_of(plugin: object, hosts: HostView) -> Int64:
    """Return the label of the group that each host's result depends on: int64[len(hosts)], -1 for a host
    that depends on itself alone.

    A change of one host affects all hosts with the same label. The plugin reads the other hosts of a group in
    the columns of ``hosts.table`` and in ``progress.members``; ``hosts.free`` and ``hosts.capacity`` are of
    the hosts of the call. The labels themselves come from ``hosts.table``.
    """
    return cast(Int64, plugin.domain(hosts))  # type: ignore[attr-defined]


def free_of_class(weigher: object, table: NodeTable) -> str | None:
    """Return the resource class whose free amounts are a weigher's numbers; None if they are others."""
    free_of = getattr(weigher, "free_of", None)
    reported = getattr(weigher, "reported", None)
    if not isinstance(free_of, str) or (isinstance(reported, str) and table.has(reported)):
        return None
    return free_of


def minval_of(weigher: object) -> float:
    """Return the number that a weigher normalises to 0; -inf if it is the least of its numbers."""
    minval = getattr(weigher, "minval", None)
    return -math.inf if minval is None else float(minval)


def is_negated(weigher: object) -> bool:
    """Return whether a weigher's multiplier counts with the opposite sign."""
    return bool(getattr(weigher, "negated", False))


def in_order(filters: Sequence[F]) -> list[F]:
    """Return the filters in the order in which they are called: see `Filter`."""
    return sorted(filters, key=lambda each: (depends_on_claims(each), _cost(each)))


def _cost(plugin: object) -> int:
    if names_hosts(plugin):
        return 1
    return 2 if looks_at(plugin) is None else 0
