"""A view of the index: all blocks as they are at one time, for readers in other threads."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from roost.dashboard.past.index_block import IndexBlock
from roost.dashboard.past.index_entries import NOBODY, Touch, key_of
from roost.fleet.columns import Int64


class ProviderPosts(NamedTuple):
    """The commits that touch a provider, ascending. ``touch`` and ``consumer``: see `PROVIDERS`."""

    seq: Int64
    touch: np.ndarray[tuple[int], np.dtype[np.uint8]]
    consumer: np.ndarray[tuple[int], np.dtype[np.uint64]]

    def first(self, touch: Touch) -> int | None:
        """Return the first commit that touches one of some parts; None if none does."""
        found = np.flatnonzero(self.touch & int(touch))
        return int(self.seq[found[0]]) if len(found) else None

    def all(self, touch: Touch) -> list[int]:
        """Return the commits that touch one of some parts."""
        return [int(each) for each in self.seq[(self.touch & int(touch)) > 0]]

    def first_of_consumers(self) -> tuple[frozenset[int], dict[int, int]]:
        """Return the consumers whose holdings of the provider change.

        Those that held something of it before are returned by themselves too, each with its first change.
        """
        uses = np.flatnonzero(self.consumer != NOBODY)
        if not len(uses):
            return frozenset(), {}
        consumer = self.consumer[uses]
        order = np.argsort(consumer, kind="stable")
        ordered = consumer[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] ^ np.uint64(1)))
        firsts = uses[order[begins]]
        held = firsts[(self.touch[firsts] & int(Touch.HELD)) > 0]
        changes = dict(zip(self.consumer[held].tolist(), self.seq[held].tolist(), strict=True))
        return frozenset(ordered[begins].tolist()), changes


class IndexView:
    """Consecutive blocks, from the commit ``first`` to ``last``. Without blocks they are 1 and 0."""

    def __init__(self, blocks: Sequence[IndexBlock]) -> None:
        self.blocks = tuple(blocks)
        self.first = self.blocks[0].first if self.blocks else 1
        self.last = self.blocks[-1].last if self.blocks else 0

    def with_block(self, block: IndexBlock) -> "IndexView":
        """Return the view with one more block at its end."""
        return IndexView((*self.blocks, block))

    def after(self, version: int) -> Iterator[IndexBlock]:
        """Yield the blocks that have commits after a version, in order."""
        return (block for block in self.blocks if block.last > version)

    def posts_of(self, provider: str, version: int) -> ProviderPosts:
        """Return the commits after a version that touch a provider."""
        key = key_of(provider)
        seqs, touches, consumers = [], [], []
        for block in self.after(version):
            posts = block.posts_of(key)
            if block.first <= version and len(posts):
                posts = posts[posts["offset"] >= block.offset_after(version)]
            if len(posts):
                seqs.append(block.first + posts["offset"].astype(np.int64))
                touches.append(posts["touch"])
                consumers.append(posts["consumer"])
        if not seqs:
            return ProviderPosts(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.uint64))
        return ProviderPosts(np.concatenate(seqs), np.concatenate(touches), np.concatenate(consumers))

    def next_change(self, consumer: str, version: int) -> int | None:
        """Return the first commit after a version that changes a consumer; None if none does."""
        key = key_of(consumer)
        for block in self.after(version):
            changes = block.changes_of(key)
            later = changes[changes > version]
            if len(later):
                return int(later[0])
        return None

    def last_change(self, consumer: str, version: int) -> int | None:
        """Return the last commit up to a version that changes a consumer; None if the index has none."""
        key = key_of(consumer)
        for block in reversed(self.blocks):
            if block.first <= version:
                changes = block.changes_of(key)
                earlier = changes[changes <= version]
                if len(earlier):
                    return int(earlier[-1])
        return None

    def last_touch(self, providers: Sequence[str], version: int) -> int | None:
        """Return the last commit up to a version that touches one of some providers; None: none has."""
        keys = [key_of(each) for each in providers]
        for block in reversed(self.blocks):
            if block.first <= version:
                upto = block.offset_after(version)
                found = [posts["offset"][posts["offset"] < upto] for posts in map(block.posts_of, keys)]
                latest = max((int(each[-1]) for each in found if len(each)), default=-1)
                if latest >= 0:
                    return block.first + latest
        return None
