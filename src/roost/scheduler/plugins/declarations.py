"""What filters and weighers declare, with defaults: see `roost.scheduler.plugins.plugins`."""

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
    """What of a host a plugin looks at; None if it is foreign."""
    looks = getattr(plugin, "looks_at", None)
    return looks if isinstance(looks, Looks) else None


def looks_at_trees(plugin: object) -> bool:
    """Whether a plugin that declares what it looks at looks at the hosts' provider trees."""
    return Looks.TREE in (looks_at(plugin) or Looks.NOTHING)


def key_of(plugin: object, request: SchedulingRequest) -> Hashable | None:
    """All of the request that a plugin's answers depend on; None if it has nothing to say on it."""
    key = getattr(plugin, "key", None)
    return () if key is None else cast(Hashable | None, key(request))


def is_keyed(plugin: object) -> bool:
    """Whether a plugin looks at the request."""
    return hasattr(plugin, "key")


def depends_on_claims(plugin: object) -> bool:
    """Whether a filter is asked again after each claim of the run."""
    return bool(getattr(plugin, "depends_on_claims", False))


def runs_on_rebuild(plugin: object) -> bool:
    """Whether a filter is asked when an instance is rebuilt where it is."""
    return bool(getattr(plugin, "runs_on_rebuild", False))


def names_hosts(plugin: object) -> bool:
    """Whether a filter has ``named`` instead of ``mask``."""
    return hasattr(plugin, "named")


def names_by_own_members(plugin: object) -> bool:
    """Whether a filter that names the hosts that are not allowed names each for the members on it alone."""
    return bool(getattr(plugin, "names_by_own_members", False))


def has_domain(plugin: object) -> bool:
    """Whether the answer on a host comes from a group of hosts."""
    return hasattr(plugin, "domain")


def domain_of(plugin: object, hosts: HostView) -> Int64:
    """The label of the group of hosts that each host's answer comes from: int64[len(hosts)], -1 for a host
    that is alone.

    A change of one host touches all hosts with the same label. The plugin finds what it needs of the other
    hosts in the columns of ``hosts.table`` and in ``progress.members``; ``hosts.free`` and ``hosts.capacity``
    are of the hosts asked about. The labels themselves come from ``hosts.table``.
    """
    return cast(Int64, plugin.domain(hosts))  # type: ignore[attr-defined]


def free_of_class(weigher: object, table: NodeTable) -> str | None:
    """The resource class whose free amount a weigher's numbers are; None if they are anything else."""
    free_of = getattr(weigher, "free_of", None)
    reported = getattr(weigher, "reported", None)
    if not isinstance(free_of, str) or (isinstance(reported, str) and table.has(reported)):
        return None
    return free_of


def minval_of(weigher: object) -> float:
    """The number that a weigher's numbers are normalised from; -inf if it is the least of them."""
    minval = getattr(weigher, "minval", None)
    return -math.inf if minval is None else float(minval)


def is_negated(weigher: object) -> bool:
    """Whether a weigher's multiplier counts with the opposite sign."""
    return bool(getattr(weigher, "negated", False))


def in_order(filters: Sequence[F]) -> list[F]:
    """Filters in the order in which they are asked: see `Filter`."""
    return sorted(filters, key=lambda each: (depends_on_claims(each), _cost(each)))


def _cost(plugin: object) -> int:
    if names_hosts(plugin):
        return 1
    return 2 if looks_at(plugin) is None else 0
