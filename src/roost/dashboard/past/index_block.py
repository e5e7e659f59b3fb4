"""A block of the index: the entries of consecutive commits, found by provider, consumer and commit."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from roost.dashboard.past.index_entries import IndexEntries, Table
from roost.fleet.columns import Int64

Keys = npt.NDArray[np.uint64]

POSTS: Final = np.dtype([("offset", "u4"), ("touch", "u1"), ("consumer", "u8")])
USE_STEPS: Final = np.dtype([("offset", "u4"), ("provider", "u4"), ("resource_class", "u2"), ("step", "i8")])
SMALL_USE_STEPS: Final = np.dtype(
    [("offset", "u4"), ("provider", "u4"), ("resource_class", "u2"), ("step", "i4")]
)
INVENTORY_STEPS: Final = np.dtype(
    [
        *(("offset", "u4"), ("provider", "u4"), ("resource_class", "u2")),
        *((each, "i8") for each in ("capacity", "reserved", "total")),
    ]
)
PARENT_STEPS: Final = np.dtype([("offset", "u4"), ("key", "u8"), ("parent", "u8"), ("existed", "?")])
STAMPS: Final = np.dtype([("at", "f8"), ("created", "u4"), ("ended", "u4")])


class IndexBlock(NamedTuple):
    """The entries of the commits ``first`` to ``last``. Each ``offset`` is that of a commit from ``first``.

    - ``stamps``: one for each commit.
    - ``provider_keys``: ascending. Those with index i have the ``posts`` from ``provider_starts[i]`` to
      ``provider_starts[i + 1]``, in the order of commits. Consumers have ``changes``, which are offsets.
    - ``uses``, ``inventories``: in the order of commits; ``provider`` is an index of ``provider_keys``, and
      ``resource_class`` one of ``classes``. ``parents``: in the order of commits.
    """

    first: int
    classes: tuple[str, ...]
    stamps: Table
    provider_keys: Keys
    provider_starts: npt.NDArray[np.uint32]
    posts: Table
    consumer_keys: Keys
    consumer_starts: npt.NDArray[np.uint32]
    changes: npt.NDArray[np.uint32]
    uses: Table
    inventories: Table
    parents: Table

    @property
    def last(self) -> int:
        """The last commit of the block."""
        return self.first + len(self.stamps) - 1

    def posts_of(self, provider: int) -> Table:
        """Return the posts of a provider, by its key, in the order of commits."""
        return self.posts[_slice(self.provider_keys, self.provider_starts, provider)]

    def changes_of(self, consumer: int) -> Int64:
        """Return the commits that change a consumer, by its key: int64[n], ascending."""
        found = self.changes[_slice(self.consumer_keys, self.consumer_starts, consumer)]
        return self.first + found.astype(np.int64)

    def offset_after(self, version: int) -> int:
        """Return the offset of the first commit after a version, at least 0."""
        return max(0, version + 1 - self.first)


def block_of(entries: IndexEntries) -> IndexBlock:
    """Return the block of entries, of at least one commit."""
    commits = entries.commits
    first = int(commits["seq"][0])
    stamps = np.empty(len(commits), STAMPS)
    for name in ("at", "created", "ended"):
        stamps[name] = commits[name]
    provider_keys, provider_starts, order = _grouped(entries.providers["key"])
    posts = _moved(entries.providers[order], first, POSTS, ("touch", "consumer"))
    consumer_keys, consumer_starts, order = _grouped(entries.consumers["key"])
    changes = (entries.consumers["seq"][order] - first).astype(np.uint32)
    uses, inventories = entries.uses, entries.inventories
    small = not len(uses) or bool((np.abs(uses["step"]) < 2**31).all())
    use_steps = _moved(uses, first, SMALL_USE_STEPS if small else USE_STEPS, ("resource_class", "step"))
    inventory_steps = _moved(
        inventories, first, INVENTORY_STEPS, ("resource_class", "capacity", "reserved", "total")
    )
    for steps, table in ((use_steps, uses), (inventory_steps, inventories)):
        steps["provider"] = np.searchsorted(provider_keys, table["key"])
    return IndexBlock(
        first=first,
        classes=entries.classes,
        stamps=stamps,
        provider_keys=provider_keys,
        provider_starts=provider_starts,
        posts=posts,
        consumer_keys=consumer_keys,
        consumer_starts=consumer_starts,
        changes=changes,
        uses=use_steps,
        inventories=inventory_steps,
        parents=_moved(entries.parents, first, PARENT_STEPS, ("key", "parent", "existed")),
    )


def _grouped(keys: Keys) -> tuple[Keys, npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Return the distinct keys, ascending; where the group of each begins, and their end; and the order."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] ^ np.uint64(1)))
    return ordered[begins], np.append(begins, len(keys)).astype(np.uint32), order


def _moved(table: Table, first: int, dtype: np.dtype[np.void], names: Iterable[str]) -> Table:
    found = np.zeros(len(table), dtype)
    found["offset"] = table["seq"] - first
    for name in names:
        found[name] = table[name]
    return found


def _slice(keys: Keys, starts: npt.NDArray[np.uint32], key: int) -> slice:
    at = int(np.searchsorted(keys, np.uint64(key)))
    if at == len(keys) or int(keys[at]) != key:
        return slice(0, 0)
    return slice(int(starts[at]), int(starts[at + 1]))
