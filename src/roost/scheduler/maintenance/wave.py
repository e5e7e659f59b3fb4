"""One wave: the hosts that are emptied together, and the targets of their guests.

The hosts with the least use are tried first, up to the wanted size of the wave. Whole hosts go to empty
final ones where that is possible; the other guests are packed one by one, the largest first, each on the host
that it fills most. A host whose guests do not all find room stays for a later wave.

A reserve is kept while the wave is packed: room for guests as large as those of the hosts that are hardest to
evacuate. Afterwards each host outside is evacuated on trial. If one has no room, its guests are kept room for
too, and the wave is packed again. A host whose guests had no room elsewhere before the wave is excused.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Float64, Rows
from roost.scheduler.maintenance.packed_hosts import JournalEntry, Packing, VirtualGuest

TRIES = 8
"""Times that a wave is packed with a larger reserve, before it is tried with fewer hosts."""

SHRINK = 0.85
"""The size of the next, smaller wave that is tried."""

FAILURES = 48
"""Further hosts that are tried in vain, after which a wave is as large as it is."""

WHOLE = 0.5
"""Share of an empty host that the guests of another one must fill to move there together."""


ROUNDING = 1e-9
"""Difference of sums of shares that is none."""


SHELTERS = 32
"""Shelters that were found last, in which further hosts are looked for before they are tried themselves."""

ORDERS = 8
"""Orders in which the guests of a host are packed on trial, before they are said to have no room."""


class WaveSize(NamedTuple):
    """The wanted size of a wave. ``share``: of capacity, as `WaveSearch.share`. ``hosts``: at most."""

    share: float
    hosts: int


class Shelter(NamedTuple):
    """Room for the guests of a host, the largest first, and the hosts that have it: intp[n] each."""

    guests: Rows
    hosts: Rows


class WaveSearch:
    """Searches for the next wave of a packing. ``share``: float64[hosts], the part of each in the capacity.

    ``pending``: bool[hosts], the hosts that are still to be emptied. ``excused``: hosts whose guests do not
    fit on the others even before the wave.
    """

    def __init__(self, packing: Packing, pending: Bools, share: Float64, *, reserve: bool) -> None:
        self._packing = packing
        self._pending = pending
        self._share = share
        self._reserve = reserve
        self.excused = frozenset[int]()
        if reserve:
            self.excused = frozenset(self._without_shelter(()))

    def find(self, size: WaveSize) -> list[int]:
        """Return the hosts of the largest wave up to a size, with its moves in the packing; empty: none."""
        packing = self._packing
        mark = len(packing.journal)
        best, moves = list[int](), list[JournalEntry]()
        for later_first in (False, True):
            found = self._find(size, mark, later_first)
            if self._share[found].sum() > self._share[best].sum():
                best, moves = found, packing.journal[mark:]
            packing.take_back(mark)
            if len(best) >= size.hosts or self._share[best].sum() >= size.share - ROUNDING:
                break
        for entry in moves:
            packing.move(entry.guest, entry.target)
        return best

    def _find(self, size: WaveSize, mark: int, later_first: bool) -> list[int]:
        packing = self._packing
        order = sorted(np.flatnonzero(self._pending).tolist(), key=lambda host: (packing.load(host), host))
        hardest = [host for host in self._hardest() if host not in self.excused] if self._reserve else []
        kept_for = packing.by_size([guest for host in hardest[:1] for guest in packing.on[host]])
        share = size.share
        while True:
            for _ in range(TRIES):
                chosen = self._first(order, share, size.hosts)
                kept = self._keep(kept_for, chosen)
                if kept is None:
                    break
                wave = self._pack(chosen, order, WaveSize(share, size.hosts), kept, mark, later_first)
                packing.keep_free(kept, -1)
                lacking = next(self._without_shelter(wave), None) if self._reserve and wave else None
                if lacking is None:
                    return wave
                kept_for = self._larger(kept_for, lacking)
                packing.take_back(mark)
            if len(chosen) <= 1:
                return []
            share = min(share * SHRINK, self._share[chosen].sum() * SHRINK)

    def _first(self, order: Sequence[int], share: float, most: int) -> list[int]:
        chosen: list[int] = []
        total = 0.0
        for host in order:
            if len(chosen) >= most or (chosen and total >= share - ROUNDING):
                break
            chosen.append(host)
            total += self._share.item(host)
        return chosen

    def _pack(
        self,
        chosen: Sequence[int],
        order: Sequence[int],
        size: WaveSize,
        kept: Sequence[VirtualGuest],
        mark: int,
        later_first: bool,
    ) -> list[int]:
        """Pack the guests of the chosen hosts, then those of others in order, until the size is reached."""
        packing = self._packing
        wave = set(chosen)
        outside = self._outside(wave)
        self._move_whole(chosen, outside & ~self._pending)
        guests = [guest for host in chosen for guest in packing.on[host]]
        failed = self._pack_guests(guests, outside, mark, later_first)
        wave -= failed
        holding = {each.host for each in kept}
        # A host that guests have come to cannot be emptied in the same wave.
        taken = {entry.target for entry in packing.journal[mark:]}
        total, failures = self._share[list(wave)].sum(), 0
        for host in order[len(chosen) :]:
            if total >= size.share - ROUNDING or len(wave) >= size.hosts or failures >= FAILURES:
                break
            if host in holding or host in taken:
                continue
            outside[host] = False
            self._move_whole([host], outside & ~self._pending)
            if self._pack_guests(list(packing.on[host]), outside, mark, later_first):
                failures += 1
                continue
            taken |= {entry.target for entry in packing.journal[mark:] if entry.source == host}
            wave.add(host)
            total += self._share.item(host)
        return sorted(wave)

    def _pack_guests(self, guests: Sequence[int], outside: Bools, mark: int, later_first: bool) -> set[int]:
        """Pack guests one by one; returns the hosts that cannot be emptied. They are outside again."""
        packing = self._packing
        failed: set[int] = set()
        final, later = outside & ~self._pending, outside & self._pending
        # A guest that has moved already has fewer targets.
        for guest in sorted(packing.by_size(guests), key=lambda guest: packing.moves[guest], reverse=True):
            source = packing.at[guest]
            if source in failed:
                continue
            tiers = [later, final] if later_first else [final, later]
            if packing.moves[guest]:
                tiers = [final]
            targets = (packing.best(guest, tier) for tier in tiers)
            target = next((each for each in targets if each is not None), None)
            if target is not None and packing.may_move(guest):
                packing.move(guest, target)
                continue
            packing.withdraw(source, mark)
            failed.add(source)
            outside[source] = later[source] = True
        return failed

    def _move_whole(self, hosts: Sequence[int], final: Bools) -> None:
        """Move all guests of a host to an empty final one, where they fill enough of it."""
        packing = self._packing
        empty = [host for host in np.flatnonzero(final).tolist() if not packing.on[host]]
        for host in sorted(hosts, key=lambda host: (-packing.load(host), host)):
            guests = packing.by_size(list(packing.on[host]))
            if not guests or not all(packing.may_move(guest) for guest in guests):
                continue
            used = packing.used_by_guests(host)
            rows = np.array(empty, dtype=np.intp)
            fits = (packing.free[rows] >= used).all(axis=1)
            for kind in {int(packing.kind[guest]) for guest in guests}:
                fits &= packing.allowed[kind, rows]
            if not fits.any():
                continue
            left = packing.left_on(rows[fits])
            target = int(rows[fits][left.argmin()])
            if packing.weight(used) < WHOLE * left.min():
                continue
            for guest in guests:
                packing.move(guest, target)
            empty.remove(target)

    def _outside(self, wave: Iterable[int]) -> Bools:
        outside = np.ones(len(self._pending), dtype=np.bool_)
        outside[list(wave)] = False
        return outside

    # The reserve

    def _hardest(self) -> list[int]:
        """Return the hosts with guests, those that are hardest to evacuate first."""
        packing = self._packing
        hosts = [host for host, guests in enumerate(packing.on) if guests]
        largest = {host: max(packing.size.item(guest) for guest in packing.on[host]) for host in hosts}
        return sorted(hosts, key=lambda host: (-largest[host], -packing.load(host), host))

    def _keep(self, like: Sequence[int], wave: Sequence[int]) -> list[VirtualGuest] | None:
        """Take the room of guests like these outside a wave; None if they have none."""
        packing = self._packing
        outside = self._outside(wave)
        kept: list[VirtualGuest] = []
        # One empty host for all of them shelters every other host, without a trial.
        whole = [host for host in np.flatnonzero(outside).tolist() if not packing.on[host]]
        whole = [host for host in whole if self._fits_one(np.array(like, dtype=np.intp), [host])][:1]
        if whole:
            outside &= False
            outside[whole] = True
        for guest in like:
            host = packing.best_like(guest, outside)
            if host is None:
                packing.keep_free(kept, -1)
                return None
            kept.append(VirtualGuest(guest, host))
            packing.keep_free(kept[-1:])
        return kept

    def _without_shelter(self, wave: Sequence[int]) -> Iterator[int]:
        """Yield the hosts outside a wave whose guests the others outside cannot take, but excused ones."""
        packing = self._packing
        outside = self._outside(wave)
        hosts = np.flatnonzero(outside).tolist()
        empty = [host for host in hosts if not packing.on[host]]
        filled = [host for host in hosts if packing.on[host] and host not in self.excused]
        filled.sort(key=lambda host: (-packing.load(host), host))
        shelters = list[Shelter]()
        for host in filled:
            guests = np.array(packing.by_size(list(packing.on[host])), dtype=np.intp)
            if self._fits_one(guests, empty) or any(self._fits_in(each, host, guests) for each in shelters):
                continue
            outside[host] = False
            found = self._shelter(guests, outside)
            outside[host] = True
            if found is None:
                yield host
            else:
                shelters = [found, *shelters[: SHELTERS - 1]]

    def _fits_one(self, guests: Rows, empty: Sequence[int]) -> bool:
        """Return whether all guests of a host fit on one of some empty ones."""
        packing = self._packing
        if not empty:
            return False
        used = packing.amounts[guests].sum(axis=0)
        fits = (packing.free[empty] >= used).all(axis=1)
        for kind in np.unique(packing.kind[guests]):
            fits &= packing.allowed[kind, empty]
        return bool(fits.any())

    def _fits_in(self, shelter: Shelter, host: int, guests: Rows) -> bool:
        """Return whether each guest of a host, the largest first, may take the room of one in a shelter."""
        packing = self._packing
        if len(shelter.guests) < len(guests):
            return False
        like, rooms = shelter.guests[: len(guests)], shelter.hosts[: len(guests)]
        if not (packing.amounts[like] >= packing.amounts[guests]).all() or (rooms == host).any():
            return False
        if not packing.allowed[packing.kind[guests], rooms].all():
            return False
        places = [
            (group, room)
            for guest, room in zip(guests.tolist(), rooms.tolist(), strict=True)
            if (group := packing.group[guest]) is not None
        ]
        return len(set(places)) == len(places) and not any(
            packing.members[group][room] for group, room in places
        )

    def _shelter(self, guests: Rows, others: Bools) -> Shelter | None:
        """Return room for the guests of a host on others, packed one by one; None: none was found."""
        packing = self._packing
        mark = len(packing.journal)
        order: list[int] = guests.tolist()
        for _ in range(ORDERS):
            left = self._pack_in_order(order, others)
            found = np.array([packing.at[guest] for guest in guests], dtype=np.intp)
            packing.take_back(mark)
            if left is None:
                return Shelter(guests, found)
            if left == order[0]:
                return None
            # The guests before it took the only room that it may have: it comes first.
            order.remove(left)
            order.insert(0, left)
        return None

    def _pack_in_order(self, order: Sequence[int], others: Bools) -> int | None:
        """Pack guests on others one by one; returns the first that finds no room."""
        for guest in order:
            target = self._packing.best(guest, others)
            if target is None:
                return guest
            self._packing.move(guest, target)
        return None

    def _larger(self, kept_for: Sequence[int], host: int) -> list[int]:
        """Return guests of which each is as large as one of both lists, in their order."""
        packing = self._packing
        more = packing.by_size(list(packing.on[host]))
        merged = [
            max(pair, key=lambda guest: packing.size[guest]) for pair in zip(kept_for, more, strict=False)
        ]
        longer = kept_for if len(kept_for) > len(more) else more
        return [*merged, *longer[len(merged) :]]
