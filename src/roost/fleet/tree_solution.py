"""Solutions: the candidates of a query in all trees that are alike."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from roost.fleet.assignments import Assignment, Assignments
from roost.fleet.errors import TooMuchWork
from roost.fleet.position_bits import Bits, PositionBits
from roost.fleet.term_bits import FormBits, QueryTerms
from roost.fleet.tree_layout import TreeLayout
from roost.fleet.work import ALIKE, POOL, POSITION, Meter

MAX_POSITIONS = 2**13
"""Positions kept in the assignments of one solution."""

_LISTED = 200
"""Positions that are listed for a kind of term for one unit of work."""

_NO_LIMIT = 2**62


class SharingPool(NamedTuple):
    """A pool as a position of a layout.

    ``before``: the number of the tree's own positions before it. ``bits``: its bits. ``above``: the number of
    the pool above it, -1 for none.
    """

    before: int
    bits: int
    above: int


class TreeSolution:
    """The candidates that all trees with one form, equal bits and equal pools have, by position.

    ``order``: for each position of the layout, the position of the tree, or ``~n`` for the n-th pool.
    Positions that could serve nothing are left out; `hopeless` trees have none. A tree without unsplit
    candidates may have a split: then the unsplit terms are assigned here, and `roost.fleet.splitting` finds
    the parts.
    """

    def __init__(
        self, terms: QueryTerms, form: FormBits, bits: int, pools: Sequence[SharingPool], meter: Meter
    ) -> None:
        self._terms = terms
        self._meter = meter
        self._too_little = 0
        self._unsplit: bool | None = None
        self._split: bool | None = None
        self._local: bool | None = None
        self._assignments: Assignments | None = None
        self._beside: Assignments | None = None
        meter.spend_once(POSITION * len(form.form) + POOL * len(pools))
        of_positions = form.bits_at(bits)
        self.order = _order(of_positions, pools)
        decoded = _decoded(terms, form, bits, pools, self.order, of_positions)
        options = _options(terms, decoded, meter)
        self._met = bits >> form.split + 1
        if not bits >> form.split & 1 or not self._may_split(options):
            self._split = False
        if not options or not all(options):
            self._unsplit = False
        elif not any(term.resources for term in terms.terms):
            self._local = False
        if self.hopeless:
            # Thousands of trees are: what no reader needs is not kept.
            self._local, self.order = False, []
            return
        self._own = [at >= 0 for at in self.order]
        self._layout = _layout(terms, form, pools, self.order, options, decoded, meter)

    @property
    def hopeless(self) -> bool:
        """True if it is known, without any work, that there are no candidates."""
        return self._unsplit is False and self._split is False

    @property
    def possible(self) -> bool:
        """True if there is a candidate. Raises `TooMuchWork`."""
        return self.unsplit or self.split

    @property
    def unsplit(self) -> bool:
        """True if there is an unsplit candidate. Raises `TooMuchWork`."""
        if self._unsplit is None:
            self._unsplit = self._has_assignment(self._layout)
        return self._unsplit

    @property
    def split(self) -> bool:
        """True if the unsplit terms have an assignment beside a split. Raises `TooMuchWork`."""
        if self._split is None:
            positions = range(len(self.order))
            self._split = next(self.beside_split(positions), None) is not None
        return self._split

    @property
    def local(self) -> bool:
        """True if there is a candidate that takes something from the tree itself. Raises `TooMuchWork`.

        A split does so.
        """
        if self._local is None:
            self._local = self._find_local() if self.unsplit else self.split
        return self._local

    def assignments(self, rows: Sequence[int]) -> Iterator[Assignment]:
        """Return the unsplit assignments of a tree as rows. ``rows``: its row at each position of the layout.

        Raises `TooMuchWork`.
        """
        if self._unsplit is False:
            return iter(())
        if self._assignments is None:
            self._assignments = self._search(self._layout)
        return self._assignments.of_tree(rows)

    def beside_split(self, rows: Sequence[int]) -> Iterator[Assignment]:
        """Return the assignments of the unsplit terms beside a split. Raises `TooMuchWork`."""
        terms = self._terms
        if self._split is False:
            return iter(())
        if not terms.unsplit:
            return iter(((),))
        if self._beside is None:
            layout = self._layout
            # Traits that the providers of the parts have are needed of no other provider of the group.
            beside = layout._replace(
                options=[layout.options[place] for place in terms.unsplit],
                trait_bits=[bits | self._met for bits in layout.trait_bits],
            )
            asked = [terms.terms[place] for place in terms.unsplit]
            self._beside = Assignments(terms.rest, asked, beside, MAX_POSITIONS, self._meter)
        return self._beside.of_tree(rows)

    def forget(self) -> None:
        """Drop the assignments."""
        self._assignments = self._beside = None

    def _may_split(self, options: Sequence[list[int]]) -> bool:
        """Return whether each unsplit term has an option, and all required traits can be met."""
        terms = self._terms
        if not all(options[place] for place in terms.unsplit):
            return False
        return terms.rest is terms.query or self._met == (1 << len(terms.required)) - 1

    def _search(self, layout: TreeLayout) -> Assignments:
        terms = self._terms
        return Assignments(terms.query, terms.terms, layout, MAX_POSITIONS, self._meter)

    def _has_assignment(self, layout: TreeLayout) -> bool:
        left = self._meter.left(_NO_LIMIT)
        if left <= self._too_little:
            # An earlier reader had as many units left, and they did not suffice.
            raise TooMuchWork("more work than is allowed")
        try:
            return next(self._search(layout).of_tree(range(len(self.order))), None) is not None
        except TooMuchWork:
            self._too_little = left + left // 8
            raise

    def _find_local(self) -> bool:
        if all(self._own):
            return self.unsplit
        layout = self._layout
        for place, term in enumerate(self._terms.terms):
            if not term.resources:
                continue
            every = layout.options[place]
            own = [position for position in every if self._own[position]]
            if len(own) == len(every):
                return self.unsplit
            if own:
                options = [*layout.options]
                options[place] = own
                if self._has_assignment(layout._replace(options=options)):
                    return True
        return False


def _order(of_positions: Sequence[int], pools: Sequence[SharingPool]) -> list[int]:
    """Return the order of the positions of a layout, by ascending row: see `TreeSolution`."""
    if not pools:
        return [position for position, bits in enumerate(of_positions) if bits]
    order = []
    left = deque(sorted(range(len(pools)), key=lambda number: pools[number].before))
    for position, bits in enumerate(of_positions):
        while left and pools[left[0]].before <= position:
            order.append(~left.popleft())
        if bits:
            order.append(position)
    return order + [~number for number in left]


class _Decoded(NamedTuple):
    """The bits that some positions of a layout have in common, and the numbers of these positions.

    ``barred``: the positions are pools that the unsuffixed group may not use.
    """

    bits: Bits
    numbers: list[int]
    barred: bool


def _decoded(
    terms: QueryTerms,
    form: FormBits,
    bits: int,
    pools: Sequence[SharingPool],
    order: Sequence[int],
    of_positions: Sequence[int],
) -> list[_Decoded]:
    """Decode the bits of the positions of a layout. Most devices are alike: their bits are decoded once."""
    alike: dict[tuple[PositionBits, int], list[int]] = {}
    for number, at in enumerate(order):
        key = (form.positions[at], of_positions[at]) if at >= 0 else (terms.pool, pools[~at].bits)
        alike.setdefault(key, []).append(number)
    barred = bool(bits >> form.barred & 1)
    return [
        _Decoded(position.read(its), numbers, barred and position is terms.pool and order[numbers[0]] < 0)
        for (position, its), numbers in alike.items()
    ]


def _options(terms: QueryTerms, decoded: Sequence[_Decoded], meter: Meter) -> list[list[int]]:
    """Return for each term its positions, ascending."""
    parts: list[list[list[int]]] = [[] for _ in terms.kinds]
    for said, numbers, bars in decoded:
        meter.spend_once(ALIKE + len(said.kinds) * (2 + len(numbers) // _LISTED))
        for kind in said.kinds:
            if not (bars and terms.spread >> kind & 1):
                parts[kind].append(numbers)
    options = [its[0] if len(its) == 1 else sorted(chain.from_iterable(its)) for its in parts]
    return [options[kind] for kind in terms.kind_of]


def _layout(
    terms: QueryTerms,
    form: FormBits,
    pools: Sequence[SharingPool],
    order: Sequence[int],
    options: list[list[int]],
    decoded: Sequence[_Decoded],
    meter: Meter,
) -> TreeLayout:
    trait_bits = [0] * len(order)
    available = {name: [0] * len(order) for name in terms.amounts}
    for said, numbers, _ in decoded:
        meter.spend_once(len(numbers) * len(said.available) // 4)
        if said.traits:
            for number in numbers:
                trait_bits[number] = said.traits
        for name, amount in said.available.items():
            column = available[name]
            for number in numbers:
                column[number] = amount
    ancestor = _ancestors(form, pools, order) if terms.query.same_subtree else [-1] * len(order)
    return TreeLayout(options, ancestor, trait_bits, available)


def _ancestors(form: FormBits, pools: Sequence[SharingPool], order: Sequence[int]) -> list[int]:
    """Return the next position of a layout above each one, -1 for none."""
    place = {at: number for number, at in enumerate(order)}
    parents = form.form.parents
    known: dict[int, int] = {}
    found = []
    for at in order:
        if at < 0:
            above = pools[~at].above
            found.append(-1 if above < 0 else place[~above])
            continue
        passed = []
        above = parents[at]
        while above >= 0 and above not in place and above not in known:
            passed.append(above)
            above = parents[above]
        nearest = known[above] if above in known else place.get(above, -1) if above >= 0 else -1
        known.update(dict.fromkeys(passed, nearest))
        found.append(nearest)
    return found
