"""The index: all its blocks, of files and of newer commits. It is used by one thread at a time."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from roost.dashboard.past.index_block import IndexBlock, block_of
from roost.dashboard.past.index_entries import EntryCollector, IndexEntries, joined
from roost.dashboard.past.index_file import StoredBlock
from roost.dashboard.past.index_folder import IndexFolder
from roost.dashboard.past.index_view import IndexView
from roost.ledger.feed import Commit

RANGE_COMMITS: Final = 32_768
"""Commits of a file: 22 minutes at 25 a second, and some 3 MB."""

_GROWTH: Final = 2
"""A part is joined with a neighbour that has at most so many times its commits. So the number of parts rises
with the logarithm of their commits, and each commit is joined as many times."""


class Span(NamedTuple):
    """Consecutive commits, from ``first`` to ``last``."""

    first: int
    last: int


class _Part(NamedTuple):
    entries: IndexEntries
    block: IndexBlock


class PastIndex:
    """The blocks of an index, by range of commits. A range has a file, or parts that wait for the rest of it.

    ``size``: commits of a range, other than `RANGE_COMMITS` in tests.
    """

    def __init__(self, folder: IndexFolder, size: int = RANGE_COMMITS) -> None:
        self.size = size
        self._folder = folder
        self._stored: dict[int, StoredBlock] = {}
        self._parts: dict[int, list[_Part]] = {}
        self._collector = EntryCollector()

    # Files

    def load(self, history: str) -> dict[int, tuple[int, str]]:
        """Map the files of a history, and remove all others.

        Returns: the last commit of each file and its token, by number, to be compared with the database.
        """
        self._stored.clear()
        self._parts.clear()
        self._folder.clear_leftovers()
        found = {}
        for number in self._folder.numbers():
            stored = self._folder.read(number)
            if stored is None:
                continue
            if stored.history == history and self._range(stored.block.first) == number:
                self._stored[number] = stored
                found[number] = (stored.block.last, stored.token)
            else:
                self._folder.remove(number)
        return found

    def drop(self, number: int) -> None:
        """Remove a range."""
        self._stored.pop(number, None)
        self._parts.pop(number, None)
        self._folder.remove(number)

    def bytes(self) -> int:
        """Return the size of all files."""
        return sum(each.size for each in self._stored.values())

    def drop_before(self, seq: int) -> None:
        """Remove the ranges whose commits are all before one."""
        for number in [each for each in (*self._stored, *self._parts) if (each + 1) * self.size < seq]:
            self.drop(number)

    def drop_beyond(self, most_bytes: int) -> int:
        """Remove the oldest files until the others have at most so many bytes.

        Returns: the first commit that may be kept; 0 if nothing was removed.
        """
        left = self.bytes()
        first = 0
        for number in sorted(self._stored):
            if left <= most_bytes:
                break
            left -= self._stored[number].size
            self.drop(number)
            first = (number + 1) * self.size + 1
        return first

    def complete(self, oldest: int) -> list[Span]:
        """Return the ranges that are whole and have no file, given the oldest kept commit."""
        found = []
        for number, parts in self._parts.items():
            first, last = number * self.size + 1, (number + 1) * self.size
            blocks = [each.block for each in parts]
            whole = all(one.last + 1 == other.first for one, other in pairwise(blocks))
            if whole and blocks[-1].last == last and blocks[0].first <= max(first, oldest):
                found.append(Span(blocks[0].first, last))
        return found

    def store(self, last: int, history: str, token: str) -> None:
        """Write the range that ends with a commit. ``token``: of that commit. Raises: `OSError`."""
        number = self._range(last)
        parts = self._parts[number]
        parts[:] = [_whole(parts)]
        self._stored[number] = self._folder.write(number, parts[0].block, history, token)
        del self._parts[number]

    # Commits

    def add(self, commits: Sequence[Commit]) -> None:
        """Add consecutive commits that the index does not have. Raises: `msgspec.MsgspecError`."""
        while commits:
            number = self._range(commits[0].seq)
            here = (number + 1) * self.size - commits[0].seq + 1
            for commit in commits[:here]:
                self._collector.add(commit)
            self._insert(number, self._collector.take())
            commits = commits[here:]

    def missing(self, oldest: int, newest: int, most: int) -> Span | None:
        """Return the newest missing commits of a range of the history, at most ``most``; None: none is."""
        for number in range(self._range(newest), self._range(oldest) - 1, -1):
            first, last = max(oldest, number * self.size + 1), min(newest, (number + 1) * self.size)
            for block in reversed(self._blocks(number)):
                if block.last < last:
                    break
                last = min(last, block.first - 1)
            if first <= last:
                below = max((block.last for block in self._blocks(number) if block.last < last), default=0)
                return Span(max(first, below + 1, last - most + 1), last)
        return None

    def view(self) -> IndexView:
        """Return the newest consecutive blocks."""
        found: list[IndexBlock] = []
        for block in self._descending():
            if found and block.last != found[-1].first - 1:
                break
            found.append(block)
        return IndexView(found[::-1])

    def _descending(self) -> Iterator[IndexBlock]:
        for number in sorted({*self._stored, *self._parts}, reverse=True):
            yield from reversed(self._blocks(number))

    def _blocks(self, number: int) -> list[IndexBlock]:
        stored = self._stored.get(number)
        if stored is not None:
            return [stored.block]
        return [each.block for each in self._parts.get(number, ())]

    def _insert(self, number: int, entries: IndexEntries) -> None:
        parts = self._parts.setdefault(number, [])
        part = _Part(entries, block_of(entries))
        at = bisect_left([each.block.first for each in parts], part.block.first)
        parts.insert(at, part)
        while True:
            pairs = (i for i in (at - 1, at) if 0 <= i < len(parts) - 1 and _join(parts[i], parts[i + 1]))
            pair = next(pairs, None)
            if pair is None:
                return
            parts[pair : pair + 2] = [_whole(parts[pair : pair + 2])]
            at = pair

    def _range(self, seq: int) -> int:
        return (seq - 1) // self.size


def _join(left: _Part, right: _Part) -> bool:
    """Return whether two neighbours become one part."""
    some, other = len(left.block.stamps), len(right.block.stamps)
    return left.block.last + 1 == right.block.first and max(some, other) <= _GROWTH * min(some, other)


def _whole(parts: Sequence[_Part]) -> _Part:
    entries = joined([each.entries for each in parts])
    return _Part(entries, block_of(entries))
