"""The bytes of the map: one for each host, a level of what is shown or a state."""

from typing import Final, Literal

import msgspec
import numpy as np

from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.html.values import amount
from roost.fleet.columns import Bools, Float64, Int64
from roost.fleet.host_levels import NO_LEVEL, Levels, class_levels, levels
from roost.scheduler.nodes.host_states import DISABLED as HOST_DISABLED
from roost.scheduler.nodes.host_states import DOWN as HOST_DOWN

NONE: Final = NO_LEVEL
DOWN: Final = 33
DISABLED: Final = 34
FILTERED: Final = 35
"""Bytes beside the levels 0 to 31: without the class, down, disabled, not chosen by the filter."""

Shown = Literal["used", "free", "fragmentation", "state"]
"""The number that the map shows by colour."""

SHOWN: Final[dict[Shown, str]] = {
    "used": "Used",
    "free": "Free",
    "fragmentation": "Fragmented",
    "state": "State",
}
"""Titles of what the map shows."""

PROCESSORS: Final = ("VCPU", "PCPU")
MEMORY: Final = ("MEMORY_MB",)


class MapScale(msgspec.Struct, frozen=True):
    """The scale of a map, for its legend.

    ``ends``: words from the lowest level to the highest. ``none``: of hosts without the class.
    """

    title: str
    ends: tuple[str, ...]
    none: str


def map_levels(now: HostsNow, by: Shown, resource_class: str, chosen: Bools | None) -> Levels:
    """Return the byte of each host: uint8[n]. ``chosen``: the hosts of the filter, None: all."""
    if by == "state":
        found: Levels = np.full(len(now), 0 if now.states_known else NO_LEVEL, dtype=np.uint8)
    else:
        amounts = now.amounts(resource_class)
        capacity, used = amounts.capacity, amounts.used
        if by == "fragmentation":
            found = levels(capacity, fragmented(now, resource_class))
            found[(capacity == 0) & (used == 0)] = NO_LEVEL
        else:
            most = most_free(now, resource_class) if by == "free" else None
            found = class_levels(capacity, used, most)
    found[now.states == HOST_DISABLED] = DISABLED
    found[now.states == HOST_DOWN] = DOWN
    if chosen is not None:
        found[~chosen] = FILTERED
    return found


def most_free(now: HostsNow, resource_class: str) -> int:
    """Return the most units of a class that a host has free, rounded up: to 1, 2, 3, 4, 6, 8, 12, 16, 24, …

    The end of the scale stays where it is while amounts change a little.
    """
    amounts = now.amounts(resource_class)
    most = int((amounts.capacity - amounts.used).max(initial=1))
    power = 1 << max(0, most.bit_length() - 1)
    return next(end for end in (power, power + power // 2, 2 * power) if end >= most)


def fragmented(now: HostsNow, resource_class: str) -> Int64:
    """Return the free units of a class on each host that one instance cannot take: int64[n].

    They are in several pieces, or the processors or the memory of the host are used up before them. Of free
    units in several providers of a tree, the largest piece counts as one. Of processors and memory, the share
    of the class that is free beyond their free share is left over in the end.
    """
    amounts = now.amounts(resource_class)
    free = np.maximum(amounts.capacity - amounts.used, 0)
    pieces = free - np.minimum(now.largest(resource_class), free)
    share = free / np.maximum(amounts.capacity, 1)
    beyond = np.zeros(len(free))
    for others in (PROCESSORS, MEMORY):
        if resource_class not in others:
            beyond = np.maximum(beyond, share - _free_share(now, others))
    found: Int64 = np.maximum(pieces, np.floor(beyond * amounts.capacity).astype(np.int64))
    return found


def _free_share(now: HostsNow, classes: tuple[str, ...]) -> Float64:
    """Return the largest free share of some classes on each host; 1 on a host without them: float64[n]."""
    found = np.full(len(now), -1.0)
    for name in classes:
        capacity, used = now.amounts(name)[:2]
        there = capacity > 0
        found[there] = np.maximum(found, (capacity - used) / np.maximum(capacity, 1))[there]
    found = np.clip(found, -1.0, 1.0)
    return np.where(found < 0, 1.0, found)


def scale_of(now: HostsNow, by: Shown, resource_class: str) -> MapScale:
    """Return the scale of what the map shows."""
    none = f"without {resource_class}" if now.fleet is not None else "use not known"
    match by:
        case "state":
            return MapScale("Up", ("up",), "not known")
        case "free":
            most = most_free(now, resource_class)
            half = amount(resource_class, most // 2)
            return MapScale(f"{resource_class} free", ("0", half, amount(resource_class, most)), none)
        case "fragmentation":
            title = f"{resource_class} free in pieces, or beyond processors and memory"
        case _:
            title = f"{resource_class} used"
    return MapScale(title, ("0 %", "50 %", "100 %"), none)
