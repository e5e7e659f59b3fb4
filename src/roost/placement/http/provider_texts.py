"""The JSON of provider summaries, made once for each state of a provider and kept.

Why not encode each answer as a whole: of a thousand candidates a thousand summaries with forty traits each
are shown, a megabyte, and between two requests hardly one of them has changed. Encoding them took most of
the time of an answer; joining kept texts takes a fifth of a millisecond.
"""

import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet import Fleet

MOST_KEPT = 200_000
"""Summaries kept from one request to the next, about 600 bytes each; and sets of traits, and uuids."""


@dataclass(frozen=True)
class Form:
    """What a summary shows. ``classes``: only these, None for all; a class that a provider has not is left
    out in either case. ``tree``: parent and root."""

    classes: tuple[str, ...] | None
    traits: bool
    tree: bool

    @property
    def whole(self) -> bool:
        """Whether it shows everything, and so is the same for every query."""
        return self.classes is None and self.traits and self.tree


class _Summary(NamedTuple):
    """A member of ``provider_summaries``, in three texts: most hosts have the same traits."""

    start: str
    traits: str
    end: str


class _Quoted(dict[int, str]):
    """The uuid of each row as JSON."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = weakref.ref(fleet)

    def __missing__(self, row: int) -> str:
        fleet = self._fleet()
        assert fleet is not None
        text = self[row] = quoted(fleet.uuid(row))
        return text


class ProviderTexts:
    """Texts of the providers of a fleet; of another fleet once they are brought to it."""

    def __init__(self) -> None:
        self.uuids: dict[int, str] = {}
        self._fleet: weakref.ref[Fleet] | None = None
        self._read = 0
        self._kept: dict[int, _Summary] = {}
        self._traits: dict[tuple[str, ...], str] = {}
        self._trees: dict[int, list[str]] = {}

    def bring_to(self, fleet: Fleet) -> None:
        """Forget what is no longer true of a fleet."""
        touched = None
        if self._fleet is not None and self._fleet() is fleet:
            touched = fleet.invalidations.since(self._read)
        if touched is None or max(len(self._kept), len(self._traits), len(self.uuids)) > MOST_KEPT:
            self._fleet, self._kept, self._traits, self._trees = weakref.ref(fleet), {}, {}, {}
            self.uuids = _Quoted(fleet)
        else:
            for row in touched.intersection(self.uuids):
                self._kept.pop(row, None)
                del self.uuids[row]
            if self._trees:
                # Whoever leaves a tree touches the provider that it was under, whoever comes itself.
                for row in touched:
                    self._trees.pop(row, None)
                    self._trees.pop(fleet.root.item(row), None)
        self._read = fleet.invalidations.end

    def summaries(self, fleet: Fleet, rows: Collection[int], form: Form) -> str:
        """The member ``provider_summaries``: an object, in the order of ``rows``."""
        return _object(self._texts_of(fleet, rows, form))

    def summaries_of_trees(self, fleet: Fleet, roots: Sequence[int], form: Form) -> str:
        """The same for all providers of some trees, one tree after the other."""
        trees = self._trees if form.whole else {}
        missing = [root for root in roots if root not in trees]
        below = {root: sorted(fleet.subtree(root)) for root in missing}
        texts = iter(self._texts_of(fleet, list(chain(*below.values())), form))
        trees.update(
            (root, list(islice(texts, len(_Summary._fields) * len(rows)))) for root, rows in below.items()
        )
        return _object(list(chain.from_iterable([trees[root] for root in roots])))

    def _texts_of(self, fleet: Fleet, rows: Collection[int], form: Form) -> list[str]:
        """The texts of each row's summary, one after the other."""
        kept = self._kept if form.whole else {}
        missing = [row for row in rows if row not in kept]
        kept.update(zip(missing, self._make(fleet, missing, form), strict=True))
        texts: list[str] = []
        for row in rows:
            texts += kept[row]
        if len(self._kept) > MOST_KEPT:
            self._kept = {}
            self._trees = {}
        return texts

    def _make(self, fleet: Fleet, rows: Sequence[int], form: Form) -> Iterable[_Summary]:
        stocks: list[list[str]] = [[] for _ in rows]
        for name in fleet.inventoried_classes() if form.classes is None else form.classes:
            stock = fleet.inventory_columns(name)
            slots = stock.slots(np.array(rows, dtype=np.intp))
            places = np.flatnonzero(slots >= 0)
            there = slots[places]
            key = quoted(name)
            for place, capacity, used in zip(
                places.tolist(), stock.capacity[there].tolist(), stock.used[there].tolist(), strict=True
            ):
                stocks[place].append(f'{key}:{{"capacity":{capacity},"used":{used}}}')
        for row, resources in zip(rows, stocks, strict=True):
            start = f'{self.uuids[row]}:{{"resources":{{{",".join(resources)}}}'
            traits = self._traits_of(fleet, row) if form.traits else ""
            tree = ""
            if form.tree:
                parent = fleet.parent.item(row)
                above = self.uuids[parent] if parent >= 0 else "null"
                root = self.uuids[fleet.root.item(row)]
                tree = f',"parent_provider_uuid":{above},"root_provider_uuid":{root}'
            yield _Summary(start, traits, f"{tree}}},")

    def _traits_of(self, fleet: Fleet, row: int) -> str:
        traits = fleet.traits_of(row)
        if traits not in self._traits:
            listed = sorted(traits, key=fleet.traits.__getitem__)
            self._traits[traits] = f',"traits":{msgspec.json.encode(listed).decode()}'
        return self._traits[traits]


def quoted(text: str) -> str:
    """A text as JSON."""
    return msgspec.json.encode(text).decode()


def _object(members: list[str]) -> str:
    """Members, each with a comma behind it, as one object. A megabyte is put together only once."""
    return "".join(["{", *members[:-1], *[last.removesuffix(",") for last in members[-1:]], "}"])
