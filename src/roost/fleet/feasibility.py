"""A cache beside a fleet: the feasibility of each of the queries used last.

The scheduler and ``GET /allocation_candidates`` share them.
"""

from collections import OrderedDict

import msgspec

from roost.fleet.errors import TooMuchWork
from roost.fleet.fleet import Fleet
from roost.fleet.reach import is_flat
from roost.fleet.tree_feasibility import Feasibility
from roost.fleet.tree_forms import TreeForms
from roost.fleet.work import WorkBudget
from roost.model.request import CandidateQuery

__all__ = ["Feasibilities", "Feasibility", "feasibilities"]

MOST_QUERIES = 256
"""Queries whose feasibility is kept; the least recently used one is dropped first."""
_MOST_TREES = 16_000_000
"""Most trees of all queries together; each takes four bytes."""
_MOST_SCATTERED = 1_000
"""Trees with rare forms above which clients' new queries are not kept. Each such tree takes 60 µs."""

_encode = msgspec.msgpack.Encoder().encode


class Feasibilities:
    """The feasibilities of the queries that were used last on one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._forms: TreeForms | None = None
        self._of: OrderedDict[bytes, Feasibility] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of)

    def prepare(self) -> None:
        """Number the trees of the fleet now: some 4 µs for each, and 30 µs for a tree unlike all others.

        Otherwise the first query or decision does it, in the event loop.
        """
        self._current_forms()

    def of(self, query: CandidateQuery) -> Feasibility:
        """Return the feasibility of a query, computed now if not kept. Call `catch_up` before reading it.

        Raises `TooMuchWork`; the next call continues.
        """
        return self._of_key(_encode(query), query)

    def for_answer(self, query: CandidateQuery) -> Feasibility | None:
        """Return the feasibility of a client's query; None if a search of the fleet is quicker.

        When the cache is full, a client's new query is the first one to be dropped: it replaces the new query
        before it. So clients that never repeat a query drop none that the scheduler needs.
        """
        if is_flat(self._fleet, query):
            return None
        key = _encode(query)
        known = key in self._of
        if not known and self._current_forms().scattered > _MOST_SCATTERED:
            return None
        try:
            return self._of_key(key, query)
        finally:
            # Also when it takes too much work: what is evaluated so far is the first to be dropped.
            if not known and key in self._of:
                self._of.move_to_end(key, last=False)

    def is_evaluated(self, query: CandidateQuery) -> bool:
        """Return whether a query is kept and all trees have been evaluated for it."""
        found = self._of.get(_encode(query))
        return found is not None and found.located

    def evaluate(self, query: CandidateQuery, units: int) -> int | None:
        """Evaluate the trees for a query with at most ``units`` of work. All results are kept.

        Returns None when all trees are evaluated, before that a number that rises with each call that made
        progress.
        """
        try:
            with self._fleet.meter.limited(WorkBudget(units)):
                found = self.of(query)
                found.catch_up()
                found.local_roots()
        except TooMuchWork:
            known = self._of.get(_encode(query))
            return -1 if known is None else known.progress
        return None

    def once(self, query: CandidateQuery) -> Feasibility:
        """Return the feasibility of a query, computed now and not kept."""
        found = Feasibility(self._fleet, query, self._current_forms())
        found.catch_up()
        return found

    def _of_key(self, key: bytes, query: CandidateQuery) -> Feasibility:
        found = self._of.get(key)
        if found is None:
            forms = self._current_forms()
            found = Feasibility(self._fleet, query, forms)
            most = min(MOST_QUERIES, 1 + _MOST_TREES // max(1, forms.n_trees))
            while len(self._of) >= most:
                self._of.popitem(last=False)
            self._of[key] = found
            # Kept before it is evaluated: what one operation has not the units for, the next continues.
            found.catch_up()
        self._of.move_to_end(key)
        return found

    def _current_forms(self) -> TreeForms:
        if self._forms is None:
            self._forms = TreeForms(self._fleet)
        else:
            self._forms.catch_up()
        return self._forms


def feasibilities(fleet: Fleet) -> Feasibilities:
    """Return the feasibilities kept beside a fleet."""
    found = fleet.caches.get(Feasibilities)
    if found is None:
        found = fleet.caches[Feasibilities] = Feasibilities(fleet)
    assert isinstance(found, Feasibilities)
    return found
