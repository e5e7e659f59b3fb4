"""Hosts by zone, rack and cell, with their states and their amounts of one resource class."""

from typing import Final, Literal

import msgspec
import numpy as np

from roost.dashboard.fleet.hosts import HostsNow
from roost.fleet.columns import Bools, Float64, Int64, Rows
from roost.scheduler.nodes.host_layout import HostGroup
from roost.scheduler.nodes.host_states import DISABLED, DOWN

GroupedBy = Literal["place", "zone", "rack", "cell"]
"""``rack``: by zone and rack; ``place``: by zone, rack and cell."""

GroupSort = Literal["share", "free", "hosts", "down", "name"]

MAX_SUM: Final = 2**62
"""Units of a class in a group at most; larger sums are shown as this one."""

_NO_CLASS: Final = -1.0
"""The share of hosts and groups without the class."""

_Place = tuple[str | None, str | None, str | None]


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


class HostGroups:
    """The groups of hosts that have any, as columns, in the order of their places.

    Hosts of a zone, rack and cell are neighbours in the layout. So each number is reduced over neighbours
    first, and over the groups of the layout then; a row is made only for a group that is shown.
    """

    def __init__(
        self, now: HostsNow, resource_class: str, by: GroupedBy, chosen: Bools | None = None
    ) -> None:
        self._now = now
        parts = now.layout.groups
        names = [_place_of(each, by) for each in parts]
        self.places = sorted(set(names), key=lambda place: tuple(part or "" for part in place))
        number = {place: at for at, place in enumerate(self.places)}
        self._group_of = np.array([number[place] for place in names], dtype=np.intp)
        self._starts = np.array([each.first for each in parts], dtype=np.intp)
        amounts = now.amounts(resource_class)
        every = np.ones(len(now), dtype=np.bool_)
        columns = [every, now.states == DOWN, now.states == DISABLED, *amounts]
        if chosen is not None:
            columns = [column * chosen for column in columns]
        counts = map(self._summed, columns)
        self.hosts, self.down, self.disabled, self.capacity, self.used, self.reserved, self.total = counts
        share = np.where(amounts.capacity > 0, amounts.used / np.maximum(amounts.capacity, 1), _NO_CLASS)
        self._share = share if chosen is None else np.where(chosen, share, _NO_CLASS)
        self._best: Float64 = np.maximum.reduceat(self._share, self._starts) if parts else np.zeros(0)
        there = np.flatnonzero(self.hosts)
        self._there: Rows = there

    def __len__(self) -> int:
        """Return the number of groups that have hosts."""
        return len(self._there)

    @property
    def shares(self) -> Float64:
        """The share of each group's capacity in use; -1 without capacity: float64[len(places)]."""
        return np.where(self.capacity > 0, self.used / np.maximum(self.capacity, 1), _NO_CLASS)

    def order(self, sort: GroupSort) -> Rows:
        """Return the groups that have hosts, the largest first, equal ones and ``name`` by place: intp."""
        match sort:
            case "share":
                rank = self.shares
            case "free":
                rank = (self.capacity - self.used).astype(np.float64)
            case "hosts":
                rank = self.hosts.astype(np.float64)
            case "down":
                rank = (self.down + self.disabled).astype(np.float64)
            case _:
                return self._there
        return self._there[np.argsort(-rank[self._there], kind="stable")]

    def fullest(self) -> HostGroupRow | None:
        """Return the group with the largest share in use; None if nothing is in use."""
        order = self.order("share")
        return self.row(order.item(0)) if len(order) and self.shares[order.item(0)] > 0 else None

    def row(self, group: int) -> HostGroupRow:
        """Return one group."""
        zone, rack, cell = self.places[group]
        parts = np.flatnonzero(self._group_of == group)
        part = int(parts[np.argmax(self._best[parts])])
        first = self._now.layout.groups[part].first
        share = self._best.item(part)
        index = -1
        if share >= 0:
            hosts = self._share[first : first + self._now.layout.groups[part].hosts]
            index = self._now.layout.nodes.item(first + int(np.argmax(hosts)))
        return HostGroupRow(
            zone=zone,
            rack=rack,
            cell=cell,
            hosts=self.hosts.item(group),
            down=self.down.item(group),
            disabled=self.disabled.item(group),
            used=self.used.item(group),
            capacity=self.capacity.item(group),
            reserved=self.reserved.item(group),
            total=self.total.item(group),
            fullest=None if index < 0 else self._now.table.hosts[index],
            fullest_node=None if index < 0 else self._now.table.nodes[index],
            fullest_share=None if index < 0 else share,
        )

    def _summed(self, column: Int64 | Bools) -> Int64:
        if not len(self._starts):
            return np.zeros(0, dtype=np.int64)
        # In float64, which is exact up to 2**53: int64 would overflow where hosts have the largest amounts.
        parts = np.add.reduceat(column, self._starts, dtype=np.float64)
        sums = np.bincount(self._group_of, weights=parts, minlength=len(self.places))
        return np.minimum(sums, MAX_SUM).astype(np.int64)


def _place_of(group: HostGroup, by: GroupedBy) -> _Place:
    """Return the names of a group's place."""
    return (
        group.zone if by != "cell" else None,
        group.label if by in ("place", "rack") else None,
        group.cell if by in ("place", "cell") else None,
    )
