"""The work of an operation, counted in units: its cost is known while it runs, and depends on no clock.

An operation that reads the fleet, a query or a decision, has one `Work`. The fleet's `Meter` has it for as
long as the operation is computed, and all that is computed on the fleet spends from it. So no function passes
a budget on, and none can be called without one where its caller has set one.

A *unit* is about half a microsecond of Python on a current processor: an option that a search tries, a
provider of a candidate, or a score of providers in vector operations. All memory that a computation takes
grows with a number that is counted as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from roost.fleet.errors import TooMuchWork

TREE: Final = 3
"""Units of a tree that is looked at for its candidates where its layout is kept."""

SEARCH: Final = 40
"""Units of a search that begins, beside `TERM` for each term."""

TERM: Final = 15
"""Units of a term in a search that begins."""

LAYOUTS: Final = 300
"""Units of some trees that are laid out together, beside `KIND` for each kind of term."""

KIND: Final = 80
"""Units of a kind of term when trees are laid out."""

LAYOUT: Final = 20
"""Units of a tree whose layout is not kept, beside one for each of its providers."""

CANDIDATE: Final = 10
"""Units of a candidate with uuids for rows that is made, and looked at."""

EVALUATION: Final = 4
"""Units of a provider that is judged by itself for one term."""

POSITION: Final = 2
"""Units of a provider in the layout of one tree."""

POOL: Final = 8
"""Units of a sharing provider in the layout of one tree."""

ALIKE: Final = 8
"""Units of the providers with equal bits in the layout of one tree."""

SUMMARY: Final = 25
"""Units of a provider whose JSON is written."""

_VECTOR: Final = 20
"""Units of a few vector operations, however few rows they look at."""

_IN_VECTOR: Final = 25
"""Rows that a few vector operations look at for one unit."""


class Work:
    """The work that an operation may still do. ``left``: units.

    ``kept_left``: units of work whose result is kept for the operations after this one, and which the fleet
    demands rather than the request; None: such work counts as any other. ``kept``: units of work so far whose
    result stays even if the operation is broken off.
    """

    __slots__ = ("kept", "kept_left", "left")

    def __init__(self, units: int, *, kept_units: int | None = None) -> None:
        self.left = units
        self.kept_left = kept_units
        self.kept = 0

    def spend(self, units: int) -> None:
        """Count units of work that are done now. Raises `TooMuchWork` if they are more than is left."""
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
    """Spends the work of the operation that is computed now. Outside of `limited` nothing is counted."""

    __slots__ = ("_work",)

    def __init__(self) -> None:
        self._work: Work | None = None

    @contextmanager
    def limited(self, work: Work | None) -> Iterator[None]:
        """Spend ``work`` meanwhile; None: count nothing. The block must not wait: others would spend it."""
        before, self._work = self._work, work
        try:
            yield
        finally:
            self._work = before

    def spend(self, units: int) -> None:
        """Count units of work that are done now. Raises `TooMuchWork`."""
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
        """Count all work meanwhile as work whose result is kept if it is completed."""
        outer = self._work
        if outer is None or outer.kept_left is None:
            yield
            return
        inner = self._work = Work(outer.kept_left)
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
        """The units that are left, ``most`` at most."""
        return most if self._work is None else min(most, self._work.left)
