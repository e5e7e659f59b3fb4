"""Codes of trees for one query: trees of one variant with equal bits share a code and a solution."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from roost.fleet.columns import Bools, Int32
from roost.fleet.fleet import Fleet
from roost.fleet.position_bits import PositionBits
from roost.fleet.term_bits import FormBits, QueryTerms
from roost.fleet.tree_form import TreeForm
from roost.fleet.tree_forms import TreeForms
from roost.fleet.tree_solution import SharingPool, TreeSolution

_MOST_SEARCHED = 256
"""Solutions of a query whose assignments are kept. Before one more is searched, all are dropped."""
SPARE_CODES = 4_096
"""Most unused codes, and most solutions, before all are dropped."""

_CONDITIONS = 4
"""Conditions that are evaluated for a pool in one unit of work."""

EXCLUDED = 0
"""The code of a tree whose root does not have the traits that the query demands."""

LACKING = 1
"""The code of a tree that no pool serves and whose form lacks a class that the query demands.

It has no bits and no candidates, as `EXCLUDED`. Where hosts are of many kinds, most trees have this code.
"""


class TreeCodes:
    """The codes assigned so far, each with the solution of its trees if it was needed.

    Variants, bits and solutions are lists by code: thousands of trees may have a code of their own for each
    query, and the garbage collector would visit an object for each of them.

    Nothing may be asked before the first `begin_anew`. ``searches`` counts the solutions that were computed.
    """

    _variant: list[int]
    _bits: list[int]
    _solution: list[TreeSolution | None]
    _known: dict[tuple[int, int], int]
    _solutions: dict[object, TreeSolution]
    _with_pool: defaultdict[int, list[int]]
    _forms_bits: dict[int, FormBits]
    _at_sets: list[PositionBits]
    _pool_bits: dict[int, int]
    _hopeless: TreeSolution | None

    def __init__(self, fleet: Fleet, terms: QueryTerms, forms: TreeForms) -> None:
        self._fleet = fleet
        self._terms = terms
        self._forms = forms
        self.searches = 0

    def __len__(self) -> int:
        return len(self._bits)

    def begin_anew(self) -> None:
        """Forget all codes, because the forms of trees are numbered anew."""
        self._variant, self._bits, self._solution = [-1, -1], [0, 0], [None, None]
        self._known = {}
        self._solutions = {}
        self._hopeless = None
        self._with_pool = defaultdict(list)
        self._forms_bits = {}
        self._at_sets = []
        pools, at = self._forms.pools.rows, self._terms.pool
        self._fleet.meter.spend_once(len(pools) * (1 + at.cost // _CONDITIONS))
        self._pool_bits = {pool: at.of_pool(pool) for pool in pools}

    def code_of(self, variant: int, bits: int) -> int:
        """Return the code of the trees with a variant and bits."""
        code = self._known.get((variant, bits))
        if code is None:
            code = self._known[variant, bits] = len(self._bits)
            self._variant.append(variant)
            self._bits.append(bits)
            self._solution.append(None)
            for pool, _ in self._forms.variants[variant].pools:
                self._with_pool[pool].append(code)
        return code

    def bits(self, code: int) -> int:
        """Return the bits of the trees with a code."""
        return self._bits[code]

    def variant(self, code: int) -> int:
        """Return the number of the variant of the trees with a code; -1 for `EXCLUDED` and `LACKING`."""
        return self._variant[code]

    def variants(self) -> Int32:
        """Return the numbers of the variants of all codes: int32[len(self)]."""
        return np.array(self._variant, dtype=np.int32)

    def form_bits(self, form: TreeForm) -> FormBits:
        """Return the bits of a form for the query."""
        found = self._forms_bits.get(form.number)
        if found is None:
            at, sets = self._at_sets, self._forms.class_sets.sets
            at += [self._terms.at(classes) for classes in sets[len(at) :]]
            found = self._forms_bits[form.number] = FormBits(self._terms, form, at)
        return found

    # Solutions

    def is_local(self, code: int) -> bool:
        """Return whether the trees with a code have a candidate that takes something from the tree itself."""
        return code > LACKING and self.solution(code).local

    def local(self, codes: Int32) -> Bools:
        """Return `is_local` by code: bool[len(self)], False outside of ``codes``."""
        return self._where(codes, self.is_local)

    def hopeful(self, codes: Int32) -> Bools:
        """Return by code whether trees may have candidates: bool[len(self)], False outside of ``codes``."""
        return self._where(codes, lambda code: code > LACKING and not self.solution(code).hopeless)

    def solution(self, code: int) -> TreeSolution:
        """Return the solution of the trees with a code."""
        known = self._solution[code]
        if known is None:
            known = self._solution[code] = self._solve(code)
        return known

    def _solve(self, code: int) -> TreeSolution:
        bits = self._bits[code]
        form, pools = self._forms.variants[self._variant[code]]
        serving = tuple(self._serving(pools)) if pools else ()
        key = (form.number, bits, serving)
        solution = self._solutions.get(key)
        if solution is None:
            if len(self._solutions) % _MOST_SEARCHED == _MOST_SEARCHED - 1:
                self.forget_assignments()
            if len(self._solutions) >= SPARE_CODES:
                self._solutions.clear()
            self.searches += 1
            solution = TreeSolution(self._terms, self.form_bits(form), bits, serving, self._fleet.meter)
            if solution.hopeless:
                # All of these are alike, and most solutions are.
                solution = self._hopeless = self._hopeless or solution
            self._solutions[key] = solution
        return solution

    def rows(self, code: int, first: int) -> list[int]:
        """Return the row at each position of the layout of a tree with a code.

        ``first``: where the tree's own rows begin in `TreeForms.rows`.
        """
        form, pools = self._forms.variants[self._variant[code]]
        rows: list[int] = self._forms.rows[first : first + len(form.parents)].tolist()
        order = self.solution(code).order
        if pools:
            serving = [pool for pool, _ in pools if self._pool_bits[pool]]
            return [rows[at] if at >= 0 else serving[~at] for at in order]
        if len(order) < len(rows):
            return [rows[at] for at in order]
        return rows

    def forget_assignments(self) -> None:
        """Drop the assignments of all solutions."""
        for solution in self._solutions.values():
            solution.forget()

    # Pools

    def take_in_pool(self, pool: int, flipping: bool) -> list[int] | None:
        """Update the codes after a change of a pool.

        Returns None if the pool's bits are as before, else the codes for which `is_local` has changed, or
        none if not ``flipping``.
        """
        bits = self._terms.pool.of_pool(pool)
        if bits == self._pool_bits.get(pool):
            return None
        self._pool_bits[pool] = bits
        flipped = []
        for code in self._with_pool[pool]:
            was, self._solution[code] = self._solution[code], None
            if flipping and (was is None or was.local) != self.is_local(code):
                flipped.append(code)
        return flipped

    def _serving(self, pools: Iterable[tuple[int, int]]) -> Iterator[SharingPool]:
        """Yield the pools of a variant that could serve something, each with the next of them above it."""
        able = [(pool, before) for pool, before in pools if self._pool_bits[pool]]
        number = {pool: n for n, (pool, _) in enumerate(able)}
        for pool, before in able:
            above = self._fleet.parent.item(pool)
            while above >= 0 and above not in number:
                above = self._fleet.parent.item(above)
            yield SharingPool(before, self._pool_bits[pool], number.get(above, -1))

    def _where(self, codes: Int32, said: Callable[[int], bool]) -> Bools:
        """Return the result of ``said`` by code: bool[len(self)], False outside of ``codes``."""
        in_use = np.flatnonzero(np.bincount(codes))
        found = np.zeros(len(self), dtype=np.bool_)
        found[in_use] = [said(code) for code in in_use.tolist()]
        return found
