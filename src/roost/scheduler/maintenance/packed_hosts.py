"""The packing of a component: where each guest is, and what is free on each host.

A guest may move to a host if its kind is allowed there, each class has room by the rule of the ledger, and
its server group has a place. Moves are noted in a journal, so that they can be taken back.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Float64, Int64, Rows
from roost.fleet.fits import has_room
from roost.scheduler.maintenance.plan import MOST_MOVES, FleetToMaintain


class JournalEntry(NamedTuple):
    """A move of a guest, and the number of its moves before: indexes of the packing."""

    guest: int
    source: int
    target: int
    moves: int


class VirtualGuest(NamedTuple):
    """Room that is kept free for a guest like this. ``guest``: the index of the one that it is like."""

    guest: int
    host: int


class Packing:
    """The state of a component, by the indexes of its hosts and guests.

    - ``free``: int64[hosts, classes]. ``amounts``: int64[guests, classes].
    - ``allowed``: bool[kinds, hosts], the targets that guests of a kind may have. ``kind``: intp[guests].
    - ``size``: float64[guests], the share of a whole host of the class that is nearest to being full.
    - ``at``: the host of each guest. ``moves``: the number of its moves so far.
    - ``on``: the guests of each host.
    - ``journal``: the moves so far, oldest first.
    """

    def __init__(self, fleet: FleetToMaintain) -> None:
        self.fleet = fleet
        self.index = {host.name: number for number, host in enumerate(fleet.hosts)}
        classes = sorted({name for guest in fleet.guests for name in guest.amounts}) or ["VCPU"]
        self.classes = classes
        self.capacity = _columns([host.capacity for host in fleet.hosts], classes)
        self.amounts = _columns([guest.amounts for guest in fleet.guests], classes)
        self._claimed = [np.flatnonzero(row) for row in self.amounts]
        self.taken = _columns([host.taken for host in fleet.hosts], classes)
        self.free = self.capacity - self.taken
        kinds = {
            name: number for number, name in enumerate(dict.fromkeys(each.kind for each in fleet.guests))
        }
        self.kind = np.array([kinds[each.kind] for each in fleet.guests], dtype=np.intp)
        takes = np.array([host.takes_guests for host in fleet.hosts], dtype=np.bool_)
        self.allowed: Bools = np.zeros((len(kinds), len(fleet.hosts)), dtype=np.bool_)
        for name, number in kinds.items():
            self.allowed[number, [self.index[host] for host in fleet.kinds[name] if host in self.index]] = (
                True
            )
        self.allowed &= takes
        self.at = [self.index[guest.host] for guest in fleet.guests]
        self.moves = [0] * len(fleet.guests)
        self.on: list[set[int]] = [set() for _ in fleet.hosts]
        self.members: dict[str, Counter[int]] = {name: Counter() for name in fleet.groups}
        self.group = [guest.group if guest.group in fleet.groups else None for guest in fleet.guests]
        for guest, host in enumerate(self.at):
            self._put(guest, host)
        used = np.maximum(self.capacity - self.free, 0).sum(axis=0) / np.maximum(self.capacity.sum(axis=0), 1)
        self._weights: Float64 = (used**2) / np.maximum(self.capacity.max(axis=0, initial=0), 1)
        self.size: Float64 = (self.amounts * self._weights).max(axis=1, initial=0.0)
        self.journal: list[JournalEntry] = []

    def _put(self, guest: int, host: int, times: int = 1) -> None:
        self.free[host] -= times * self.amounts[guest]
        (self.on[host].add if times > 0 else self.on[host].discard)(guest)
        group = self.group[guest]
        if group is not None:
            self.members[group][host] += times

    def fitting(self, guest: int, targets: Bools) -> Bools:
        """Return the hosts among ``targets`` that can take a guest now: bool[hosts]."""
        found = self._with_room(guest, targets)
        group = self.group[guest]
        if group is not None:
            most = self.fleet.groups[group]
            found[[host for host, number in self.members[group].items() if number >= most]] = False
        found[self.at[guest]] = False
        return found

    def best(self, guest: int, targets: Bools) -> int | None:
        """Return the host among ``targets`` that a guest fills most, None if none can take it."""
        return self._fullest(self.fitting(guest, targets))

    def best_like(self, guest: int, targets: Bools) -> int | None:
        """Return the host among ``targets`` that another guest like this one fills most; None: none."""
        return self._fullest(self._with_room(guest, targets))

    def _with_room(self, guest: int, targets: Bools) -> Bools:
        found: Bools = targets & self.allowed[self.kind[guest]]
        classes = self._claimed[guest]
        found &= has_room(self.amounts[guest, classes], self.free[:, classes]).all(axis=1)
        return found

    def _fullest(self, hosts: Bools) -> int | None:
        found = np.flatnonzero(hosts)
        return int(found[self.left_on(found).argmin()]) if len(found) else None

    def left_on(self, hosts: Rows) -> Float64:
        """Return what is free on hosts, with the classes that are nearest to being full weighing most."""
        left: Float64 = self.free[hosts] @ self._weights
        return left

    def move(self, guest: int, target: int) -> None:
        """Move a guest."""
        source = self.at[guest]
        self.journal.append(JournalEntry(guest, source, target, self.moves[guest]))
        self._put(guest, source, -1)
        self._put(guest, target)
        self.at[guest] = target
        self.moves[guest] += 1

    def take_back(self, mark: int) -> None:
        """Take all moves back that were noted after the first ``mark`` ones."""
        for entry in reversed(self.journal[mark:]):
            self._take_back(entry)
        del self.journal[mark:]

    def withdraw(self, source: int, mark: int) -> None:
        """Take the moves from a host back that were noted after the first ``mark`` ones."""
        kept = []
        for entry in self.journal[mark:]:
            if entry.source == source:
                self._take_back(entry)
            else:
                kept.append(entry)
        self.journal[mark:] = kept

    def _take_back(self, entry: JournalEntry) -> None:
        self._put(entry.guest, entry.target, -1)
        self._put(entry.guest, entry.source)
        self.at[entry.guest], self.moves[entry.guest] = entry.source, entry.moves

    def keep_free(self, kept: Sequence[VirtualGuest], times: int = 1) -> None:
        """Take the room of virtual guests; with ``times`` -1, give it back."""
        for each in kept:
            self.free[each.host] -= times * self.amounts[each.guest]

    def used_by_guests(self, host: int) -> Int64:
        """Return what the guests on a host hold there: int64[classes]."""
        total: Int64 = self.amounts[sorted(self.on[host])].sum(axis=0, dtype=np.int64)
        return total

    def capacity_shares(self) -> Float64:
        """Return the part of each host in the capacity of all: float64[hosts], in sum 1."""
        shares: Float64 = np.maximum(self.capacity @ self._weights, 1e-9)
        parts: Float64 = shares / shares.sum()
        return parts

    def weight(self, amounts: Int64) -> float:
        """Return amounts by the weights of `left_on`."""
        return float(amounts @ self._weights)

    def load(self, host: int) -> float:
        """Return the sum of the sizes of the guests on a host."""
        return sum(self.size.item(guest) for guest in self.on[host])

    def by_size(self, guests: Sequence[int]) -> list[int]:
        """Return guests in the order in which they are packed: the largest first."""
        return sorted(guests, key=lambda guest: (-self.size[guest], guest))

    def may_move(self, guest: int) -> bool:
        """Return whether a guest has moves left."""
        return self.moves[guest] < MOST_MOVES


def _columns(rows: Sequence[dict[str, int]], classes: Sequence[str]) -> Int64:
    """Return amounts as columns: int64[rows, classes]."""
    columns = np.array([[row.get(name, 0) for name in classes] for row in rows], dtype=np.int64)
    return columns.reshape(len(rows), len(classes))
