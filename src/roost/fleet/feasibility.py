"""The feasibilities that are kept beside a fleet, for the queries used last.

The scheduler and ``GET /allocation_candidates`` share them.
"""

from collections import OrderedDict

import msgspec

from roost.fleet.errors import TooMuchWork
from roost.fleet.fleet import Fleet
from roost.fleet.tree_feasibility import Feasibility
from roost.fleet.tree_forms import TreeForms
from roost.fleet.work import Work
from roost.model.request import CandidateQuery

__all__ = ["Feasibilities", "Feasibility", "feasibilities"]

MOST_QUERIES = 256
"""Queries that are kept; the one used longest ago is dropped first."""
_MOST_TREES = 16_000_000
"""Trees of all queries together; each takes four bytes."""
_MOST_SCATTERED = 1_000
"""Trees with rare forms, beyond which only the scheduler's queries are kept. Each takes 60 µs at first."""

_encode = msgspec.msgpack.Encoder().encode


class Feasibilities:
    """The feasibilities of one fleet: those of the queries used last."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._forms: TreeForms | None = None
        self._of: OrderedDict[bytes, Feasibility] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of)

    def prepare(self) -> None:
        """Number the trees of the fleet now: some 4 µs for each, and 30 µs for one that is alike no other.

        Otherwise the first query or decision does it, in the event loop.
        """
        self._current_forms()

    def of(self, query: CandidateQuery) -> Feasibility:
        """The feasibility of a query, found now if it is not kept. Call `catch_up` before reading it."""
        return self._of_key(_encode(query), query)

    def for_answer(self, query: CandidateQuery) -> Feasibility | None:
        """The feasibility of a query that a client asks; None if a search of the fleet is quicker.

        Where as many queries are kept as may be, a query that is asked for the first time takes the place of
        the one before it. So clients that never repeat a query drop none that the scheduler needs.
        """
        key = _encode(query)
        known = key in self._of
        if not known and self._current_forms().scattered > _MOST_SCATTERED:
            return None
        found = self._of_key(key, query)
        if not known:
            self._of.move_to_end(key, last=False)
        return found

    def is_evaluated(self, query: CandidateQuery) -> bool:
        """Whether all trees have been evaluated for a query that is kept."""
        found = self._of.get(_encode(query))
        return found is not None and found.located

    def evaluate(self, query: CandidateQuery, units: int) -> int | None:
        """Evaluate the trees for a query as far as some units of work reach. All that is found is kept.

        Returns None at the end, and before it a number that has grown if the units were enough for anything.
        """
        try:
            with self._fleet.meter.limited(Work(units)):
                found = self.of(query)
                found.catch_up()
                found.local_roots()
        except TooMuchWork:
            known = self._of.get(_encode(query))
            return -1 if known is None else known.searches
        return None

    def once(self, query: CandidateQuery) -> Feasibility:
        """The feasibility of a query, found now and not kept."""
        return Feasibility(self._fleet, query, self._current_forms())

    def _of_key(self, key: bytes, query: CandidateQuery) -> Feasibility:
        found = self._of.get(key)
        if found is None:
            forms = self._current_forms()
            found = Feasibility(self._fleet, query, forms)
            most = min(MOST_QUERIES, 1 + _MOST_TREES // max(1, forms.n_trees))
            while len(self._of) >= most:
                self._of.popitem(last=False)
            self._of[key] = found
        self._of.move_to_end(key)
        return found

    def _current_forms(self) -> TreeForms:
        if self._forms is None:
            self._forms = TreeForms(self._fleet)
        else:
            self._forms.catch_up()
        return self._forms


def feasibilities(fleet: Fleet) -> Feasibilities:
    """The feasibilities kept beside a fleet."""
    found = fleet.caches.get(Feasibilities)
    if found is None:
        found = fleet.caches[Feasibilities] = Feasibilities(fleet)
    assert isinstance(found, Feasibilities)
    return found
