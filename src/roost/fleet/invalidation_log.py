"""A log of changed rows, from which caches beside a fleet learn which entries to recompute.

With a version for each row instead, a cache of a hundred thousand rows would compare all of them to find the
two that a claim has changed.
"""

MIN_ENTRIES = 100_000
"""Least number of entries kept. A cache that lags by more may have to be rebuilt."""


class InvalidationLog:
    """Rows in the order in which they changed.

    Every change of a row is an entry, except a change of its generation alone. Undoing a change is a change.
    ``end`` is the number of all entries ever appended; it never falls. At least the last ``min_entries``
    entries are kept, at most twice as many.
    """

    __slots__ = ("_first", "_max_entries", "_min_entries", "_rows")

    def __init__(self, min_entries: int = MIN_ENTRIES) -> None:
        self._rows: list[int] = []
        self._first = 0
        self._min_entries = min_entries
        self._max_entries = 2 * min_entries

    @property
    def end(self) -> int:
        """The position of the next entry."""
        return self._first + len(self._rows)

    def append(self, row: int) -> None:
        """Record that a row has changed."""
        self._rows.append(row)
        if len(self._rows) > self._max_entries:
            del self._rows[: self._min_entries]
            self._first += self._min_entries

    def since(self, position: int) -> set[int] | None:
        """Return the rows changed since `end` was ``position``; None if the log begins after it."""
        skip = position - self._first
        if skip < 0:
            return None
        return set(self._rows[skip:])

    def forget(self) -> None:
        """Drop all entries: `since` gives None for every position up to now."""
        self._first = self.end + 1
        self._rows.clear()
