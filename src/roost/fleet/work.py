"""The work of an operation, counted in units, so that its cost is limited without a clock.

An operation that reads the fleet, a query or a decision, has one `WorkBudget`. The fleet's `Meter` holds it
while the operation is computed, and all computations on the fleet spend from it. So no function passes a
budget on, and none escapes the budget that its caller has set.

A *unit* is about half a microsecond of Python on a current processor: an option that a search tries, a
provider of a candidate, or a score of providers in vector operations. All memory that a computation takes
grows with a number that is counted as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from roost.fleet.errors import TooMuchWork

TREE: Final = 3
"""Units to read the candidates of one tree whose layout is kept."""

SEARCH: Final = 40
"""Units to begin a search, beside `TERM` for each term."""

TERM: Final = 15
"""Units for each term to begin a search."""

LAYOUTS: Final = 300
"""Units to lay out some trees together, beside `KIND` for each kind of term."""

KIND: Final = 80
"""Units for each kind of term to lay out trees."""

LAYOUT: Final = 20
"""Units to read one tree whose layout is not kept, beside one for each of its providers."""

CANDIDATE: Final = 10
"""Units to make a candidate with uuids from rows, and to read it, beside `AMOUNT` for each amount."""

AMOUNT: Final = 3
"""Units for each amount of a candidate that is made, or checked for room."""

EVALUATION: Final = 4
"""Units to evaluate one provider by itself for one term."""

POSITION: Final = 2
"""Units for each provider in the layout of one tree."""

POSITION_SET: Final = 60
"""Units to list what the providers with one set of resource classes could serve."""

POOL: Final = 8
"""Units for each sharing provider in the layout of one tree."""

ALIKE: Final = 8
"""Units for each set of providers with equal bits in the layout of one tree."""

SUMMARY: Final = 25
"""Units to write the JSON of one provider."""

_VECTOR: Final = 20
"""Fixed units of a few vector operations."""

_IN_VECTOR: Final = 25
"""Rows that a few vector operations process in one unit."""


class WorkBudget:
    """The units of work that an operation has left.

    ``left``: for the operation's own work. ``kept_left``: for work whose result is kept for later operations,
    and whose amount depends on the fleet rather than on the request; None: such work spends from ``left``.
    ``kept``: units spent so far whose result stays even if the operation is aborted.
    """

    __slots__ = ("kept", "kept_left", "left")

    def __init__(self, units: int, *, kept_units: int | None = None) -> None:
        self.left = units
        self.kept_left = kept_units
        self.kept = 0

    def spend(self, units: int) -> None:
        """Count units of work. Raises `TooMuchWork` if they are more than is left."""
        self.left -= units
        if self.left < 0:
            raise TooMuchWork("more work than is allowed")

    def spend_once(self, units: int) -> None:
        """Count units of work whose result is kept. Raises `TooMuchWork` if they are more than is left."""
        if self.kept_left is None:
            self.spend(units)
            return
        self.kept_left -= units
        if self.kept_left < 0:
            raise TooMuchWork("more work than is allowed")


class Meter:
    """Counts the work of the operation in progress. Outside of `limited` nothing is counted."""

    __slots__ = ("_work",)

    def __init__(self) -> None:
        self._work: WorkBudget | None = None

    @contextmanager
    def limited(self, work: WorkBudget | None) -> Iterator[None]:
        """Spend from ``work`` in the block; None: count nothing.

        The block must not wait for anything: other operations would spend from it.
        """
        before, self._work = self._work, work
        try:
            yield
        finally:
            self._work = before

    def spend(self, units: int) -> None:
        """Count units of work. Raises `TooMuchWork`."""
        if self._work is not None:
            self._work.spend(units)

    def spend_rows(self, rows: int) -> None:
        """Count a few vector operations on so many rows. Raises `TooMuchWork`."""
        if self._work is not None:
            self._work.spend(_VECTOR + rows // _IN_VECTOR)

    def spend_once(self, units: int) -> None:
        """Count units of work whose result is kept if the operation completes it. Raises `TooMuchWork`."""
        if self._work is not None:
            self._work.spend_once(units)

    @contextmanager
    def once(self) -> Iterator[None]:
        """Count all work in the block as work whose result is kept if it is completed."""
        outer = self._work
        if outer is None or outer.kept_left is None:
            yield
            return
        inner = self._work = WorkBudget(outer.kept_left)
        try:
            yield
        finally:
            self._work = outer
            outer.kept_left = inner.left
            outer.kept += inner.kept

    def keep(self, units: int) -> None:
        """Count units of work whose result is kept at once. Raises `TooMuchWork`, before the work is done."""
        self.spend_once(units)
        if self._work is not None:
            self._work.kept += units

    def left(self, most: int) -> int:
        """Return the units that are left, ``most`` at most."""
        return most if self._work is None else min(most, self._work.left)
