"""The assignments of all trees with one layout, searched once."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter

from roost.fleet.errors import TooMuchWork
from roost.fleet.query_terms import Term
from roost.fleet.search import TreeSearch
from roost.fleet.tree_layout import TreeLayout
from roost.fleet.work import Meter
from roost.model.request import CandidateQuery

Assignment = tuple[int, ...]
"""The position, or the row, of the provider that serves each term, in the order of the terms."""


class Assignments:
    """The assignments of the trees with one layout.

    The search runs as far as a tree is read, and its results are kept for the next trees. A layout may have
    billions of assignments: beyond ``max_positions`` positions they are not kept, and each tree is searched
    by itself. A reader that runs out of work ends the search; the next reader begins it anew.
    """

    def __init__(
        self,
        query: CandidateQuery,
        terms: Sequence[Term],
        layout: TreeLayout,
        max_positions: int,
        meter: Meter,
    ) -> None:
        self._meter = meter
        self._query = query
        self._terms = terms
        self._layout = layout
        self._max_kept = max(1, max_positions // len(terms))
        self._kept: list[Assignment] = []
        self._shared_search: Iterator[Assignment] | None = self._search()
        self._complete = False

    def of_tree(self, rows: Sequence[int]) -> Iterator[Assignment]:
        """Return the assignments of a tree as rows. ``rows``: its row at each position of the layout."""
        if self._complete:
            chosen = map(rows.__getitem__, chain.from_iterable(self._kept))
            return zip(*[chosen] * len(self._terms), strict=True)
        return self._while_searching(rows)

    def _while_searching(self, rows: Sequence[int]) -> Iterator[Assignment]:
        kept, number, row_at = self._kept, 0, rows.__getitem__
        # Several trees may be read in turn: each continues at its own number, and any may extend ``kept``.
        while True:
            for positions in islice(kept, number, None):
                number += 1
                yield tuple(map(row_at, positions))
            if number >= self._max_kept:
                break
            try:
                for positions in self._shared_search or ():
                    kept.append(positions)
                    number += 1
                    yield tuple(map(row_at, positions))
                    if number < len(kept) or number >= self._max_kept:
                        break
                else:
                    self._complete = True
                    return
            except TooMuchWork:
                # A generator that has raised is exhausted, and would look finished.
                self._shared_search = islice(self._search(), len(kept), None)
                raise
        # The first tree that gets here takes over the shared search; all others begin their own.
        own, self._shared_search = self._shared_search, None
        for positions in own or islice(self._search(), number, None):
            yield tuple(map(row_at, positions))

    def _search(self) -> Iterator[Assignment]:
        """Yield all assignments, lazily."""
        options = self._layout.options
        if not all(options):
            return
        # Terms with the fewest options first, so that hopeless branches end early.
        order = sorted(range(len(options)), key=lambda i: len(options[i]))
        search = TreeSearch(
            self._query,
            [self._terms[i] for i in order],
            self._layout,
            [options[i] for i in order],
            self._meter,
        )
        if order == sorted(order):
            yield from map(tuple, search.assignments())
        else:
            yield from map(itemgetter(*sorted(order, key=order.__getitem__)), search.assignments())
