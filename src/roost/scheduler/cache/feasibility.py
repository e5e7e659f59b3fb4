"""Feasibility of hosts for the queries of a request: of all hosts, and again of those that have changed.

All have one interface, `HostFeasibility`. `FlatFeasibility` is for a query that root providers serve alone:
the fleet has no other providers in its trees, and no sharing provider with anything that the query requests;
see `by_roots_alone`. `TreeHostFeasibility` is for all other queries, `AnyFeasibility` for a query and its
fallbacks. Why not judge flat hosts as trees with one position: a repeated decision would take a third
longer, and the first one on a query six times as long on 100,000 hosts.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Protocol

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Rows
from roost.fleet.feasibility import feasibilities
from roost.fleet.fits import fits, has_room
from roost.fleet.match import in_any
from roost.fleet.reach import is_flat
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT
from roost.scheduler.cache.host_columns import CachedTotals, HostEntry, Room, Rooms, room_at
from roost.scheduler.nodes.tree_providers import that_fit

_UNKNOWN: Room = (0, 0, 0, 0, 0)
"""Marks a resource class whose inventory was not read yet."""
_MOST_GROUPS = 64
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_IN_CACHE = 65_536
"""Places judged at once, so that intermediate results stay in the processor's cache."""


def by_roots_alone(fleet: Fleet, query: CandidateQuery) -> bool:
    """Return whether each host that serves a query does so by its root provider alone."""
    return len(query.groups) <= _MOST_GROUPS and is_flat(fleet, query)


class HostFeasibility(Protocol):
    """Judges hosts, by the rows of their root providers, for the queries of a request.

    ``alone``: no other host's claim takes anything from a host.
    """

    @property
    def alone(self) -> bool: ...

    def catch_up(self) -> None:
        """Apply the changes of the fleet. Until the next call the answers about trees stay as they are."""

    def flips(self) -> set[int] | None:
        """Return the rows of roots, not changed themselves, that serve now and did not, or the other way
        round, since the last call of `serving` or of this. None: too many are to be judged again."""

    def candidates(self, fleet: Fleet, row: int, claiming: bool) -> Iterator[Candidate]:
        """Yield the candidates of a feasible host that still fit, in placement's order.

        ``claiming``: the run has claimed hosts already.
        """

    def serves(self, fleet: Fleet, entry: HostEntry) -> bool:
        """Return whether a host can serve one of the queries."""

    def serve(self, fleet: Fleet, rows: Rows) -> Bools:
        """Return which of some hosts can serve one of the queries: bool[len(rows)]."""

    def serving(self, fleet: Fleet, totals: CachedTotals, place_at_row: Rows, homeless: Rows) -> Bools:
        """Return which of all hosts can serve one of the queries: bool[places].

        ``homeless``: the places without a row.
        """


class FlatFeasibility:
    """Judges hosts for one query that roots serve alone. Nothing is cached here."""

    alone = True

    def __init__(self, query: CandidateQuery) -> None:
        self._query = query
        self._resources = query.resources
        amounts = {pair for group in query.groups for pair in group.resources.items()}
        self._amounts = list(amounts.union(self._resources.items()))
        self._required = [any_of for group in query.groups for any_of in group.required]
        self._required += [frozenset((trait,)) for trait in query.root_required]
        self._forbidden = frozenset(query.root_forbidden).union(*(each.forbidden for each in query.groups))
        self._member_of = [any_of for group in query.groups for any_of in group.member_of]
        self._outside = frozenset[str]().union(*(each.forbidden_aggregates for each in query.groups))
        self._in_trees = {group.in_tree for group in query.groups if group.in_tree is not None}
        self._impossible = sum(map(query.isolates, query.groups)) > 1
        self._suffixes = [group.suffix for group in query.groups]
        self._conditions = _encode(
            (self._required, self._forbidden, self._member_of, self._outside, self._in_trees)
        )

    def catch_up(self) -> None: ...

    def flips(self) -> set[int]:
        return set()

    def candidates(self, fleet: Fleet, row: int, claiming: bool) -> Iterator[Candidate]:
        if not claiming or self.fits(fleet, row, {}):
            uuid = fleet.uuid(row)
            mappings = {suffix: [uuid] for suffix in self._suffixes}
            yield Candidate(uuid, {uuid: self._resources.copy()}, mappings)

    def fits(self, fleet: Fleet, row: int, rooms: Rooms) -> bool:
        """Return whether a host has room. ``rooms``: inventories of the host read so far; further ones are
        added."""
        for name, amount in self._amounts:
            room = rooms.get(name, _UNKNOWN)
            if room is _UNKNOWN:
                room = rooms[name] = room_at(fleet, name, row)
            if room is None or not fits(amount, *room):
                return False
        return True

    def serves(self, fleet: Fleet, entry: HostEntry) -> bool:
        if entry.row < 0 or self._impossible or not self.fits(fleet, entry.row, entry.rooms):
            return False
        meets = entry.meets.get(self._conditions)
        if meets is None:
            meets = entry.meets[self._conditions] = self._meets(fleet, entry.row)
        return meets

    def _meets(self, fleet: Fleet, row: int) -> bool:
        """Return whether a host meets all conditions but room."""
        for any_of in self._required:
            if not any(row in fleet.with_trait(trait) for trait in any_of):
                return False
        for trait in self._forbidden:
            if row in fleet.with_trait(trait):
                return False
        for any_of in self._member_of:
            if not any(row in fleet.in_aggregate(name) for name in any_of):
                return False
        for name in self._outside:
            if row in fleet.in_aggregate(name):
                return False
        return all(fleet.find_row(root) == row for root in self._in_trees)

    def serve(self, fleet: Fleet, rows: Rows) -> Bools:
        served: Bools = np.full(len(rows), not self._impossible)
        for name, amount in self._amounts:
            columns = fleet.inventory_columns(name)
            served &= columns.fits_in(columns.slots(rows), amount)
        for any_of in self._required:
            served &= in_any(fleet.with_trait, any_of, rows)
        served &= ~in_any(fleet.with_trait, self._forbidden, rows)
        for any_of in self._member_of:
            served &= in_any(fleet.in_aggregate, any_of, rows)
        served &= ~in_any(fleet.in_aggregate, self._outside, rows)
        for root in self._in_trees:
            served &= rows == fleet.find_row(root)
        return served

    def serving(self, fleet: Fleet, totals: CachedTotals, place_at_row: Rows, homeless: Rows) -> Bools:
        """Return which of all hosts can serve the query: bool[places].

        A million hosts are judged in the order of their places. Only the rows that lack a trait or are
        outside of an aggregate are looked up: a gather costs many times as much as a comparison.
        """
        served = None if self._in_trees or self._member_of else self._by_place(fleet, totals)
        if served is None:
            served = np.zeros(len(totals.index), dtype=np.bool_)
            places = place_at_row[CandidateSearch(fleet, self._query).local_anchors()]
            served[places[places >= 0]] = True
            return served
        lacking = [fleet.in_aggregate(name).rows() for name in self._outside]
        lacking += [fleet.with_trait(trait).rows() for trait in self._forbidden]
        for any_of in self._required:
            has = np.zeros(fleet.n_rows, dtype=np.bool_)
            for trait in any_of:
                has[fleet.with_trait(trait).rows()] = True
            lacking.append(np.flatnonzero(~has))
        for rows in lacking:
            # Rows of no host have place -1, which is the spare last element.
            served[place_at_row[rows]] = False
        served[homeless] = False
        return served[:-1]

    def _by_place(self, fleet: Fleet, totals: CachedTotals) -> Bools | None:
        """Return which hosts have room, bool[places + 1]; None if the units differ from host to host."""
        places = len(totals.index)
        served = np.full(places + 1, not self._impossible)
        for name, amount in self._amounts:
            columns = fleet.inventory_columns(name)
            if not columns.n or amount > MAX_INT:
                served[:] = False
                return served
            if not totals.any_takes(name, amount):
                return None
            # The units allow the amount everywhere, and comparing room alone is ten times as fast.
            room = totals.room(name)
            for start in range(0, places, _IN_CACHE):
                some = slice(start, min(start + _IN_CACHE, places))
                served[some] &= has_room(amount, room[some])
        return served


class TreeHostFeasibility:
    """Judges hosts for one query that trees or sharing providers serve.

    The feasibility of trees is cached beside the fleet.
    """

    alone = False

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self._feasibility = feasibilities(fleet).of(query)
        self._at: int | None = None

    def catch_up(self) -> None:
        self._feasibility.catch_up()

    def flips(self) -> set[int] | None:
        if self._at is None:
            return None
        flips = self._feasibility.flips.since(self._at)
        self._at = self._feasibility.flips.end
        return flips

    def candidates(self, fleet: Fleet, row: int, claiming: bool) -> Iterator[Candidate]:
        feasibility = self._feasibility
        found = feasibility.local_at(row)
        return that_fit(fleet, found, lambda: feasibility.splits_at(row)) if claiming else found

    def serves(self, fleet: Fleet, entry: HostEntry) -> bool:
        return entry.row >= 0 and self._feasibility.is_local(entry.row)

    def serve(self, fleet: Fleet, rows: Rows) -> Bools:
        return self._feasibility.are_local(rows)

    def serving(self, fleet: Fleet, totals: CachedTotals, place_at_row: Rows, homeless: Rows) -> Bools:
        served = np.zeros(len(totals.index), dtype=np.bool_)
        places = place_at_row[self._feasibility.local_roots()]
        served[places[places >= 0]] = True
        self._at = self._feasibility.flips.end
        return served


class AnyFeasibility:
    """Judges hosts for several queries, of which one must be served.

    The candidates of a host are those of the first query, then those of the next.
    """

    def __init__(self, parts: Sequence[HostFeasibility]) -> None:
        self._parts = parts
        self.alone = all(part.alone for part in parts)

    def catch_up(self) -> None:
        for part in self._parts:
            part.catch_up()

    def flips(self) -> set[int] | None:
        # All parts are read, because each returns only its changes since its last call.
        flips = [part.flips() for part in self._parts]
        complete = [each for each in flips if each is not None]
        return set[int]().union(*complete) if len(complete) == len(flips) else None

    def candidates(self, fleet: Fleet, row: int, claiming: bool) -> Iterator[Candidate]:
        for part in self._parts:
            if part.serves(fleet, HostEntry(row, {})):
                yield from part.candidates(fleet, row, claiming)

    def serves(self, fleet: Fleet, entry: HostEntry) -> bool:
        return any(part.serves(fleet, entry) for part in self._parts)

    def serve(self, fleet: Fleet, rows: Rows) -> Bools:
        return reduce(np.logical_or, [part.serve(fleet, rows) for part in self._parts])

    def serving(self, fleet: Fleet, totals: CachedTotals, place_at_row: Rows, homeless: Rows) -> Bools:
        return reduce(
            np.logical_or, [part.serving(fleet, totals, place_at_row, homeless) for part in self._parts]
        )


def feasibility_of(fleet: Fleet, queries: Sequence[CandidateQuery]) -> HostFeasibility:
    """Return the feasibility of hosts for several queries, of which one must be served."""
    parts: list[HostFeasibility] = [
        FlatFeasibility(query) if by_roots_alone(fleet, query) else TreeHostFeasibility(fleet, query)
        for query in queries
    ]
    return parts[0] if len(parts) == 1 else AnyFeasibility(parts)
