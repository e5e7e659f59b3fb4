"""A cache of the JSON of provider summaries, written once for each state of a provider.

Why not encode each response as a whole: a response with a thousand candidates has a thousand summaries of
forty traits each, a megabyte, and hardly any of them changes between two requests. Encoding them took most of
the time of a response; joining cached texts takes a fifth of a millisecond.
"""

import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Rows, grown
from roost.fleet.work import SUMMARY

MAX_ENTRIES = 200_000
"""Entries of each cache (summaries of about 600 bytes, sets of traits, uuids). With more, it is emptied."""


QUOTED: Final = 38
"""Bytes of a uuid as a JSON string."""

Bytes = npt.NDArray[np.uint8]

_AT_ONCE = 256
"""Summaries that are written before their work is counted."""

_JOINED = 4
"""Parts of summaries that are joined for one unit of work."""


@dataclass(frozen=True)
class SummaryContent:
    """The content of a summary, which depends on microversion and query.

    ``classes``: the resource classes to show, None for all of the provider. ``traits``: whether to show
    traits. ``tree``: whether to show parent and root.
    """

    classes: tuple[str, ...] | None
    traits: bool
    tree: bool

    @property
    def whole(self) -> bool:
        """True if the summary shows everything, so that it is the same for every query and can be cached."""
        return self.classes is None and self.traits and self.tree


class _Summary(NamedTuple):
    """A member of ``provider_summaries`` in three parts: most hosts share the text of their traits."""

    start: bytes
    traits: bytes
    end: bytes


class _Quoted(dict[int, bytes]):
    """The uuid of each row as a JSON string, written when it is first looked up."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = weakref.ref(fleet)

    def __missing__(self, row: int) -> bytes:
        fleet = self._fleet()
        assert fleet is not None
        text = self[row] = msgspec.json.encode(fleet.uuid(row))
        return text


class ProviderTexts:
    """The cached texts of one fleet's providers. Call `bring_to` before reading them."""

    def __init__(self) -> None:
        self.uuids: dict[int, bytes] = {}
        self._columns: Bytes = np.zeros((0, QUOTED), dtype=np.uint8)
        self._in_columns: Bools = np.zeros(0, dtype=np.bool_)
        self._fleet: weakref.ref[Fleet] | None = None
        self._read = 0
        self._summaries: dict[int, _Summary] = {}
        self._traits: dict[tuple[str, ...], bytes] = {}
        self._trees: dict[int, list[bytes]] = {}

    def bring_to(self, fleet: Fleet) -> None:
        """Drop the texts of providers that have changed since the last call; all, for another fleet."""
        changed = None
        if self._fleet is not None and self._fleet() is fleet:
            changed = fleet.invalidations.since(self._read)
        if changed is None or max(len(self._summaries), len(self._traits), len(self.uuids)) > MAX_ENTRIES:
            self._fleet, self._summaries, self._traits, self._trees = weakref.ref(fleet), {}, {}, {}
            self.uuids = _Quoted(fleet)
            self._in_columns = np.zeros(0, dtype=np.bool_)
        else:
            # Views of keys, unlike sets and dictionaries, go through the smaller of the two.
            for row in self.uuids.keys() & changed:
                self._summaries.pop(row, None)
                del self.uuids[row]
                if row < len(self._in_columns):
                    self._in_columns[row] = False
            if self._trees:
                # A provider that leaves a tree changes its old parent; one that joins a tree changes itself.
                for row in changed:
                    self._trees.pop(row, None)
                    self._trees.pop(fleet.root.item(row), None)
        self._read = fleet.invalidations.end

    def columns(self, rows: Rows) -> Bytes | None:
        """Return the uuids of rows as JSON strings: uint8[*rows.shape, QUOTED].

        None if one of them is not as long as uuids are.
        """
        self._in_columns = grown(self._in_columns, int(rows.max()) + 1, False)
        if len(self._columns) < len(self._in_columns):
            larger = np.zeros((len(self._in_columns), QUOTED), dtype=np.uint8)
            larger[: len(self._columns)] = self._columns
            self._columns = larger
        missing = rows[~self._in_columns[rows]]
        if len(missing):
            named = np.unique(missing)
            found = [self.uuids[row] for row in named.tolist()]
            if any(len(text) != QUOTED for text in found):
                return None
            self._columns[named] = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, QUOTED)
            self._in_columns[named] = True
        return self._columns[rows]

    def summaries(self, fleet: Fleet, rows: Collection[int], content: SummaryContent) -> list[bytes]:
        """Encode ``provider_summaries``, a JSON object in the order of ``rows``, in parts.

        Raises `TooMuchWork`.
        """
        return _object(self._texts_of(fleet, rows, content))

    def summaries_of_trees(self, fleet: Fleet, roots: Sequence[int], content: SummaryContent) -> list[bytes]:
        """Encode ``provider_summaries`` with all providers of some trees, one tree after the other.

        Raises `TooMuchWork`.
        """
        trees = self._trees if content.whole else {}
        missing = [root for root in roots if root not in trees]
        fleet.meter.spend(len(roots))
        below = {root: _below(fleet, root) for root in missing}
        texts = iter(self._texts_of(fleet, list(chain(*below.values())), content))
        trees.update(
            (root, list(islice(texts, len(_Summary._fields) * len(rows)))) for root, rows in below.items()
        )
        parts = list(chain.from_iterable([trees[root] for root in roots]))
        fleet.meter.spend(len(parts) // _JOINED)
        return _object(parts)

    def _texts_of(self, fleet: Fleet, rows: Collection[int], content: SummaryContent) -> list[bytes]:
        """Return the parts of the summaries of ``rows``, one summary after the other.

        Raises `TooMuchWork`. Summaries written by then stay cached, so the next request needs less work.
        """
        kept = self._summaries if content.whole else {}
        count = fleet.meter.keep if content.whole else fleet.meter.spend
        missing = [row for row in rows if row not in kept]
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            count(SUMMARY * len(some))
            kept.update(zip(some, self._make(fleet, some, content), strict=True))
        fleet.meter.spend(len(rows) // _JOINED)
        texts = list(chain.from_iterable(map(kept.__getitem__, rows)))
        if len(self._summaries) > MAX_ENTRIES:
            self._summaries = {}
            self._trees = {}
        return texts

    def _make(self, fleet: Fleet, rows: Sequence[int], content: SummaryContent) -> Iterable[_Summary]:
        resources_of: list[list[str]] = [[] for _ in rows]
        for name in fleet.inventoried_classes() if content.classes is None else content.classes:
            columns = fleet.inventory_columns(name)
            slots = columns.slots(np.array(rows, dtype=np.intp))
            places = np.flatnonzero(slots >= 0)
            there = slots[places]
            key = quoted(name)
            for place, capacity, used in zip(
                places.tolist(), columns.capacity[there].tolist(), columns.used[there].tolist(), strict=True
            ):
                resources_of[place].append(f'{key}:{{"capacity":{capacity},"used":{used}}}')
        for row, resources in zip(rows, resources_of, strict=True):
            start = b"%b:{%b}" % (self.uuids[row], f'"resources":{{{",".join(resources)}'.encode())
            traits = self._traits_of(fleet, row) if content.traits else b""
            tree = b""
            if content.tree:
                parent = fleet.parent.item(row)
                above = self.uuids[parent] if parent >= 0 else b"null"
                root = self.uuids[fleet.root.item(row)]
                tree = b',"parent_provider_uuid":%b,"root_provider_uuid":%b' % (above, root)
            yield _Summary(start, traits, tree + b"},")

    def _traits_of(self, fleet: Fleet, row: int) -> bytes:
        traits = fleet.traits_of(row)
        if traits not in self._traits:
            listed = sorted(traits, key=fleet.traits.__getitem__)
            self._traits[traits] = b',"traits":' + msgspec.json.encode(listed)
        return self._traits[traits]


def _below(fleet: Fleet, root: int) -> list[int]:
    found = sorted(fleet.subtree(root))
    fleet.meter.spend(len(found))
    return found


def quoted(text: str) -> str:
    """Return a text as a JSON string."""
    return msgspec.json.encode(text).decode()


def _object(members: list[bytes]) -> list[bytes]:
    """Return the parts of one JSON object. ``members``: those of its members, each ending with a comma."""
    return [b"{", *members[:-1], *[last.removesuffix(b",") for last in members[-1:]], b"}"]
