"""Hosts by zone, rack and cell, with their states and their amounts of one resource class."""

from typing import Final, Literal

import msgspec
import numpy as np

from roost.dashboard.fleet.hosts import HostsNow
from roost.fleet.columns import Bools, Int64
from roost.scheduler.nodes.host_states import DISABLED, DOWN, STATES

GroupedBy = Literal["place", "zone", "rack", "cell"]
"""``rack``: by zone and rack; ``place``: by zone, rack and cell."""

GroupSort = Literal["share", "free", "hosts", "down", "name"]

MAX_SUM: Final = 2**62
"""Units of a class in a group at most; larger sums are shown as this one."""

SORTS: Final[tuple[GroupSort, ...]] = ("share", "free", "hosts", "down", "name")


class HostGroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a place, with the amounts of one class: see `TreeAmounts`.

    A name of a place is None where the group is of several. ``fullest``: the name of the host with the
    largest share in use, ``fullest_node`` its root provider, ``fullest_share`` the share; None without the
    class.
    """

    zone: str | None
    rack: str | None
    cell: str | None
    hosts: int
    down: int
    disabled: int
    used: int
    capacity: int
    reserved: int
    total: int
    fullest: str | None = None
    fullest_node: str | None = None
    fullest_share: float | None = None

    @property
    def share(self) -> float:
        """The share of the capacity in use; -1 without capacity."""
        return self.used / self.capacity if self.capacity > 0 else -1.0


def grouped(
    now: HostsNow, resource_class: str, by: GroupedBy, chosen: Bools | None = None
) -> list[HostGroupRow]:
    """Return the groups of hosts in the order of their places. ``chosen``: only these hosts count."""
    keys = [
        (
            each.zone if by != "cell" else None,
            each.label if by in ("place", "rack") else None,
            each.cell if by in ("place", "cell") else None,
        )
        for each in now.layout.groups
    ]
    names = sorted(set(keys), key=lambda key: tuple(part or "" for part in key))
    number = {key: place for place, key in enumerate(names)}
    of_group = np.array([number[key] for key in keys], dtype=np.intp)
    code = of_group[now.group_of()] if len(keys) else np.zeros(0, dtype=np.intp)
    amounts = now.amounts(resource_class)
    places = np.arange(len(now)) if chosen is None else np.flatnonzero(chosen)
    code = code[places]

    def summed(column: Int64) -> list[int]:
        # Exact up to 2**53; int64 would overflow where hosts have the largest amounts.
        found = np.bincount(code, weights=column[places], minlength=len(names))
        sums: list[int] = np.minimum(found, MAX_SUM).astype(np.int64).tolist()
        return sums

    counts = np.bincount(code * len(STATES) + now.states[places], minlength=len(names) * len(STATES))
    hosts, down, disabled = (
        each.tolist()
        for each in (
            counts.reshape(-1, len(STATES)).sum(axis=1),
            counts[DOWN :: len(STATES)],
            counts[DISABLED :: len(STATES)],
        )
    )
    used, capacity, reserved, total = (
        summed(each) for each in (amounts.used, amounts.capacity, amounts.reserved, amounts.total)
    )
    share = np.where(amounts.capacity > 0, amounts.used / np.maximum(amounts.capacity, 1), -1.0)[places]
    # The last host of each group in ascending order of shares is its fullest; of equal ones the first.
    order = np.lexsort((-np.arange(len(places)), share, code))
    ends = np.searchsorted(code[order], np.arange(len(names)), side="right") - 1
    found = []
    for place, (zone, rack, cell) in enumerate(names):
        if not hosts[place]:
            continue
        best = int(order[ends[place]])
        fullest = share.item(best) >= 0
        index = now.layout.nodes.item(places.item(best))
        found.append(
            HostGroupRow(
                zone=zone,
                rack=rack,
                cell=cell,
                hosts=hosts[place],
                down=down[place],
                disabled=disabled[place],
                used=used[place],
                capacity=capacity[place],
                reserved=reserved[place],
                total=total[place],
                fullest=now.table.hosts[index] if fullest else None,
                fullest_node=now.table.nodes[index] if fullest else None,
                fullest_share=share.item(best) if fullest else None,
            )
        )
    return found


def ordered(groups: list[HostGroupRow], sort: GroupSort) -> list[HostGroupRow]:
    """Return groups in an order: the largest first, but by name; equal ones by name."""
    match sort:
        case "share":
            return sorted(groups, key=lambda each: -each.share)
        case "free":
            return sorted(groups, key=lambda each: each.used - each.capacity)
        case "hosts":
            return sorted(groups, key=lambda each: -each.hosts)
        case "down":
            return sorted(groups, key=lambda each: -(each.down + each.disabled))
        case _:
            return groups
