"""Which rows were touched, in order: how a cache beside a fleet learns what it must look at again.

Why not a version of each row: a cache of a hundred thousand rows would have to compare all of them to find
the two that a claim has touched.
"""

_KEPT = 100_000
"""Entries that are kept at least: a cache that was not asked for longer than that begins anew."""


class Journal:
    """The rows that were touched, by everything but a change of the generation alone; what classes and traits
    there are is nothing about a row.

    ``end`` counts all entries ever made and only rises. Changes that are taken back touch their rows again.
    """

    __slots__ = ("_first", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._first = 0

    @property
    def end(self) -> int:
        """The number of the next entry."""
        return self._first + len(self._rows)

    def note(self, row: int) -> None:
        """A row was touched."""
        self._rows.append(row)
        if len(self._rows) > 2 * _KEPT:
            del self._rows[:_KEPT]
            self._first += _KEPT

    def since(self, end: int) -> set[int] | None:
        """The rows touched since the journal ended at ``end``; None if that is too long ago to know."""
        skip = end - self._first
        if skip < 0:
            return None
        return set(self._rows[skip:])
