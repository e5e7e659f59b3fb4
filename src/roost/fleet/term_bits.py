"""The terms of a query, and the bits of providers and trees that decide its candidates.

The bits of a provider: one for each term that it could serve by itself (terms with equal demands share one),
one for each trait that the unsuffixed group requires of its providers jointly, and a number for each class
that several terms could take from it: the available amount. Nothing else about a provider decides which
candidates there are, so trees of one form with equal bits have the same candidates, position by position.

Available amounts are rounded down to a sum of amounts that terms demand. Amounts between two such sums are
the same for a search; without rounding hardly two hosts would be alike.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Rows, distinct
from roost.fleet.demanded_amounts import DemandedAmounts
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any
from roost.fleet.position_bits import WORD, PositionBits
from roost.fleet.query_terms import NO_OPTIONS, Term, matching_rows, split_terms
from roost.fleet.splitting import Splitting
from roost.fleet.term_kind import TermKind, has_trait, is_conditional, is_in_aggregate
from roost.fleet.tree_form import TreeForm
from roost.fleet.work import POSITION_SET
from roost.model.request import CandidateQuery


class FormBits:
    """The bits of the trees of one form: of each position, one after the other, and of the whole tree.

    ``shifts``: where the bits of each position begin. ``cost``: the number of conditions of all positions.
    ``numbers``: of the `PositionBits` at each position. The bit ``barred`` says that the tree bars pools from
    the unsuffixed group, because its root is in a forbidden aggregate. The bits from ``split`` on describe
    the split of the tree.
    """

    def __init__(self, terms: "QueryTerms", form: TreeForm, at: Sequence[PositionBits]) -> None:
        """``at``: the bits of the positions with each set of classes."""
        self._terms = terms
        self.form = form
        self.positions = [at[number] for number in form.class_sets]
        ends = list(accumulate(position.width for position in self.positions))
        self.shifts = [0, *ends[:-1]]
        self.barred = ends[-1]
        self.split = self.barred + 1
        self.cost = sum(position.cost for position in self.positions)
        self.numbers: Rows = np.array([position.number for position in self.positions], dtype=np.intp)

    def of(self, rows: Sequence[int], root: int) -> int:
        """Return the bits of a tree with these rows by position."""
        found = [
            (position.of(row), position.width)
            for position, row in zip(self.positions, rows, strict=True)
            if position.width
        ]
        return self._with_rest(found, rows, root)

    def joined(self, by_place: Sequence[int], rows: Sequence[int], root: int) -> int:
        """Return the bits of a tree from the bits of each position."""
        found = [
            (bits, position.width)
            for bits, position in zip(by_place, self.positions, strict=True)
            if position.width
        ]
        return self._with_rest(found, rows, root)

    def _with_rest(self, found: Sequence[tuple[int, int]], rows: Sequence[int], root: int) -> int:
        bits = _joined([*found, (int(self._terms.bars(root)), 1)])
        return bits | self._terms.splitting.of(rows) << self.split if self._terms.splitting.width else bits

    def replaced(self, bits: int, position: int, now: int) -> int:
        """Return the bits of a tree after the provider at one position has changed in amounts.

        ``now``: the bits of the provider. Those of the tree's split stay as they were.
        """
        at, shift = self.positions[position], self.shifts[position]
        if not at.width:
            return bits
        before = bits >> shift & ((1 << at.width) - 1)
        return bits ^ (before ^ now) << shift

    def bits_at(self, bits: int) -> list[int]:
        """Return the bits of each position from those of a tree.

        Bytes are cut out, because shifting all bits for each position would take quadratic time.
        """
        data = bits.to_bytes(self.barred // 8 + 2 + bits.bit_length() // 8, "little")
        found = []
        for position, shift in zip(self.positions, self.shifts, strict=True):
            first, within = divmod(shift, 8)
            some = int.from_bytes(data[first : first + (within + position.width + 7) // 8], "little")
            found.append(some >> within & ((1 << position.width) - 1))
        return found

    def split_again(self, bits: int, position: int, rows: Sequence[int]) -> int:
        """Return the bits of a tree with the bits of its split computed again.

        Called after the provider at one position has changed in amounts.
        """
        splitting = self._terms.splitting
        if splitting.classes.isdisjoint(self.form.classes[position]):
            return bits
        return bits & ((1 << self.split) - 1) | splitting.of(rows) << self.split

    def of_all(self, rows: Rows, roots: Rows, served: "ServedKinds") -> tuple[list[int], Rows]:
        """Return the distinct bits of all trees of the form, and the index of each tree's among them.

        ``rows``: intp[positions, trees].
        """
        parts = [
            part
            for position, at in zip(self.positions, rows, strict=True)
            if position.width
            for part in position.columns(at, served.kinds)
        ]
        parts.append((self._terms.bar(roots).astype(np.int64), 1))
        if self._terms.splitting.width:
            parts += self._terms.splitting.of_all(rows, self.form.classes, served.eligible)
        found, places = [0], np.zeros(len(roots), dtype=np.intp)
        below = 0
        while parts:
            word, width = np.zeros(len(roots), dtype=np.int64), 0
            while parts and width + parts[0][1] <= WORD:
                column, bits = parts.pop(0)
                word |= column << width
                width += bits
            words, of_word = distinct(word)
            pairs, places = distinct(places * len(words) + of_word)
            found = [found[pair // len(words)] | words[pair % len(words)] << below for pair in pairs]
            below += width
        return found, places


def _joined(parts: Sequence[tuple[int, int]]) -> int:
    """Return pairs of bits and their width as one number, with the first pair in the lowest bits."""
    while len(parts) > 1:
        parts = [
            (low | high << width, width + more)
            for (low, width), (high, more) in zip(parts[::2], [*parts[1::2], (0, 0)], strict=False)
        ]
    return parts[0][0]


class ServedKinds(NamedTuple):
    """The providers that could serve each kind of term, as masks by row of the fleet.

    ``kinds``: for each kind, whether the provider could serve its terms. ``eligible``: the result of
    `roost.fleet.splitting.Splitting.eligible`.
    """

    kinds: Sequence[Bools]
    eligible: Bools | None


class QueryTerms:
    """The terms of a query, and the layout of their bits.

    ``kinds``: terms with equal demands; ``kind_of``: the number of each term's kind; ``spread``: the kinds of
    the unsuffixed group, as bits. ``required``: the traits that the unsuffixed group requires of its
    providers jointly. ``amounts``: the demanded amounts of each class that several terms can take from one
    provider. ``asked``: the resource classes of all terms. ``unsplit``: the indexes of the terms that stay
    whole in a split; ``rest``: the query of these terms.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self.fleet = fleet
        self.query = query
        self.kinds: list[TermKind] = []
        self.kind_of: list[int] = []
        self.terms: list[Term] = []
        numbers: dict[object, int] = {}
        demanded: dict[str, list[int]] = {}
        for group, resources, demand in split_terms(query):
            number = numbers.setdefault(demand, len(self.kinds))
            if number == len(self.kinds):
                self.kinds.append(TermKind(number, group, tuple(resources.items()), is_conditional(group)))
            self.kind_of.append(number)
            self.terms.append(Term(group, resources, NO_OPTIONS))
            for name, amount in resources.items():
                demanded.setdefault(name, []).append(amount)
        self.required = tuple(
            any_of for group in query.groups if not group.granular for any_of in group.required
        )
        self.spread = sum(1 << kind.number for kind in self.kinds if not kind.group.granular)
        self._barring = frozenset[str]().union(
            *(group.forbidden_aggregates for group in query.groups if not group.granular)
        )
        alone = Counter(name for term in self.terms if query.isolates(term.group) for name in term.resources)
        self.amounts = {
            name: DemandedAmounts(amounts)
            for name, amounts in demanded.items()
            if len(amounts) > 1 and (len(amounts) - alone[name] + bool(alone[name])) > 1
        }
        self.splitting = Splitting(fleet, query)
        self.unsplit = [
            place
            for place, term in enumerate(self.terms)
            if term.group.granular or self.splitting.classes.isdisjoint(term.resources)
        ]
        self.rest = query
        if all(self.terms[place].group.granular for place in self.unsplit):
            groups = tuple(group for group in query.groups if group.granular)
            self.rest = msgspec.structs.replace(query, groups=groups)
        self._at: dict[frozenset[str] | None, PositionBits] = {}
        self.positions: list[PositionBits] = []
        self.asked = frozenset(demanded)
        self._kinds_with: dict[str | None, list[TermKind]] = {}
        for kind in self.kinds:
            first = next((name for name, _ in kind.resources), None)
            self._kinds_with.setdefault(first, []).append(kind)
        self.pool = self.at(None)

    def at(self, classes: frozenset[str] | None) -> PositionBits:
        """Return the bits of the positions with these resource classes, or of pools for None."""
        asked = None if classes is None else classes & self.asked
        if asked not in self._at:
            self.fleet.meter.spend_once(POSITION_SET)
            kinds, amounts = self.kinds, self.amounts
            if asked is not None:
                kinds = self.kinds_within(asked)
                amounts = {name: each for name, each in amounts.items() if name in asked}
            found = PositionBits(self.fleet, kinds, self.required, amounts, len(self.positions))
            self._at[asked] = found
            self.positions.append(found)
        return self._at[asked]

    def kinds_within(self, classes: Iterable[str]) -> list[TermKind]:
        """Return the kinds that demand no other classes than these, ascending."""
        classes = frozenset(classes)
        found = [kind for name in (None, *classes) for kind in self._kinds_with.get(name, ())]
        return sorted(
            (kind for kind in found if all(name in classes for name, _ in kind.resources)),
            key=lambda kind: kind.number,
        )

    def served(self, among: Sequence[int] | None = None) -> ServedKinds:
        """Return which providers could serve each kind. ``among``: rows to look at, None for all."""
        return ServedKinds(self.served_kinds(among), self.splitting.eligible())

    def served_kinds(self, among: Sequence[int] | None = None) -> list[Bools]:
        """Return `ServedKinds.kinds`. ``among``: as of `served`."""
        rows = None if among is None else np.sort(np.array(among, dtype=np.intp))
        found = []
        for kind in self.kinds:
            served: Bools = np.zeros(self.fleet.n_rows, dtype=np.bool_)
            served[matching_rows(self.fleet, kind.group, dict(kind.resources), rows)] = True
            found.append(served)
        return found

    def roots_allowed(self, roots: Rows) -> Bools:
        """Return for each root whether it has the traits that the query demands: bool[len(roots)]."""
        allowed: Bools = np.ones(len(roots), dtype=np.bool_)
        for trait in self.query.root_required:
            allowed &= self.fleet.with_trait(trait).among(roots)
        for trait in self.query.root_forbidden:
            allowed &= ~self.fleet.with_trait(trait).among(roots)
        return allowed

    def root_allowed(self, root: int) -> bool:
        """Return whether one root has the traits that the query demands."""
        has = self.fleet.with_trait
        return all(root in has(trait) for trait in self.query.root_required) and not any(
            root in has(trait) for trait in self.query.root_forbidden
        )

    def meet_together(self, rows: Iterable[int]) -> bool:
        """Return whether these providers together have the traits that the unsuffixed group requires."""
        rows = [*rows]
        return all(any(has_trait(self.fleet, any_of, row) for row in rows) for any_of in self.required)

    def bar(self, roots: Rows) -> Bools:
        """Return for each root whether its tree bars pools from the unsuffixed group: bool[len(roots)]."""
        return in_any(self.fleet.in_aggregate, self._barring, roots)

    def bars(self, root: int) -> bool:
        """Return whether the tree of one root bars pools from the unsuffixed group."""
        return is_in_aggregate(self.fleet, self._barring, root)
