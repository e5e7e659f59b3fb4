"""Feasibility for several queries, of which any may be served: a query and its fallbacks."""

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Rows
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.scheduler.cache.flat_feasibility import FlatFeasibility, TreeHostFeasibility, by_roots_alone
from roost.scheduler.cache.host_entry import HostEntry
from roost.scheduler.cache.totals import CachedTotals


class AnyFeasibility:
    """Judges hosts for several queries, of which one must be served.

    The candidates of a host are those of the first query, then those of the next.
    """

    def __init__(self, parts: Sequence[FlatFeasibility | TreeHostFeasibility]) -> None:
        self._parts = parts
        self.alone = all(part.alone for part in parts)

    def catch_up(self) -> None:
        """As `TreeHostFeasibility.catch_up`."""
        for part in self._parts:
            part.catch_up()

    def flips(self) -> set[int] | None:
        """As `TreeHostFeasibility.flips`. All parts are read, because each returns only its changes since its
        last call."""
        flips = [part.flips() for part in self._parts]
        complete = [each for each in flips if each is not None]
        return set[int]().union(*complete) if len(complete) == len(flips) else None

    def candidates(self, fleet: Fleet, row: int, claiming: bool) -> Iterator[Candidate]:
        """Yield the candidates of a feasible host. ``claiming``: the run has claimed hosts already."""
        for part in self._parts:
            if part.serves(fleet, HostEntry(row, {})):
                yield from part.candidates(fleet, row, claiming)

    def serves(self, fleet: Fleet, entry: HostEntry) -> bool:
        """Return whether a host can serve one of the queries."""
        return any(part.serves(fleet, entry) for part in self._parts)

    def serve(self, fleet: Fleet, rows: Rows) -> Bools:
        """Return which of some hosts can serve one of the queries: bool[len(rows)]."""
        return reduce(np.logical_or, [part.serve(fleet, rows) for part in self._parts])

    def all(self, fleet: Fleet, totals: CachedTotals, place_at_row: Rows, homeless: Rows) -> Bools:
        """Return which of all hosts can serve one of the queries: bool[places]."""
        return reduce(
            np.logical_or, [part.all(fleet, totals, place_at_row, homeless) for part in self._parts]
        )


def feasibility_of(
    fleet: Fleet, queries: Sequence[CandidateQuery]
) -> FlatFeasibility | TreeHostFeasibility | AnyFeasibility:
    """Return the feasibility of hosts for several queries, of which one must be served."""
    parts = [
        FlatFeasibility(query) if by_roots_alone(fleet, query) else TreeHostFeasibility(fleet, query)
        for query in queries
    ]
    return parts[0] if len(parts) == 1 else AnyFeasibility(parts)
