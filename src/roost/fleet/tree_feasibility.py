"""The trees that can serve one query, brought up to date after each change of the fleet.

    fleet.reshaped ──────▶ TreeForms     the trees by form, for all queries
    fleet.invalidations ─▶ Feasibility   one for each query: the bits of each tree (`term_bits`), as a code
                               │
                               └─ TreeSolution  one for all trees with equal form, bits and pools

After a change the bits of the providers that were touched are found again: some microseconds for each. The
search runs only for bits that no tree had before. A pool is an input of its own: when its bits change, the
answers that it is part of are found again, and trees are looked for only where an answer flips.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from roost.fleet.assignments import Assignment
from roost.fleet.choices import Choice, Need, candidate_of, takes_from_tree
from roost.fleet.columns import Bools, Int32, Rows, grown
from roost.fleet.fleet import Fleet
from roost.fleet.invalidation_log import InvalidationLog
from roost.fleet.term_bits import FormBits, QueryTerms
from roost.fleet.tree_forms import FEW_TREES, Form, TreeForms
from roost.fleet.tree_solution import Meter, Pool, TreeSolution
from roost.fleet.work import Work
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery

_MOST_SEARCHED = 256
"""Solutions of a query whose assignments are kept. Before one more is searched, all are dropped."""
_ONE_BY_ONE = 64
"""Touched rows that are evaluated one by one in any fleet; in a large one, a sixteenth of the trees."""
_SPARE_CODES = 4_096
"""Codes that trees may leave behind, and solutions that are kept, before all are dropped."""

EXCLUDED = 0
"""The code of a tree whose root does not have the traits that the query demands."""


class _Code:
    """The variant and the bits of the trees with one code. ``solution`` is None until a reader needs it."""

    __slots__ = ("bits", "solution", "variant")

    def __init__(self, variant: int, bits: int) -> None:
        self.variant = variant
        self.bits = bits
        self.solution: TreeSolution | None = None


class Feasibility:
    """Which trees can serve one query, as of the last `catch_up`.

    Only `catch_up` changes what readers see. A decision that claims from a tree therefore goes on reading the
    candidates that the tree had when the decision began. ``flips`` logs the roots for which `is_local` has
    changed since the first call of `local_roots`; each reader keeps its own position in the log. Counters for
    tests: ``evaluated`` trees and providers, ``full_evaluations`` of all trees, ``searches`` of layouts.
    """

    _at: int
    _structure_at: int
    _epoch: int
    _codes: list[_Code]
    _most_codes: int
    _flipping: bool

    def __init__(self, fleet: Fleet, query: CandidateQuery, forms: TreeForms) -> None:
        self._fleet = fleet
        self._forms = forms
        self._terms = QueryTerms(fleet, query)
        self._meter = Meter()
        self._reading: Work | None = None
        self.needs = [Need((term.group.suffix,), term.resources) for term in self._terms.terms]
        self.flips = InvalidationLog()
        self.evaluated = self.full_evaluations = self.searches = 0
        self._code: Int32 = np.zeros(0, dtype=np.int32)
        self._build()

    # Keeping up

    def catch_up(self, work: Work | None = None) -> None:
        """Take in how the fleet has changed. From now on reading candidates spends ``work``."""
        self._spend(None)
        self._take_in()
        self._spend(work)

    def _spend(self, work: Work | None) -> None:
        if self._reading is not None and self._reading.left < 0:
            # A search that ran out of work is broken off, and must not be taken for finished.
            self._forget_assignments()
        self._reading = self._meter.work = work

    def _take_in(self) -> None:
        fleet, forms = self._fleet, self._forms
        if fleet.invalidations.end == self._at:
            return
        forms.catch_up()
        touched = fleet.invalidations.since(self._at)
        restructured = forms.restructured.since(self._structure_at) if forms.epoch == self._epoch else None
        if (
            touched is None
            or restructured is None
            or len(touched) > max(_ONE_BY_ONE, forms.n_trees // 16)
            or len(self._codes) > self._most_codes
        ):
            self._build()
            return
        self._at, self._structure_at = fleet.invalidations.end, forms.restructured.end
        self._code = grown(self._code, forms.n_trees, EXCLUDED)
        for tree in restructured:
            self._evaluate_tree(tree)
        for row in touched:
            self._evaluate_row(row, restructured)
        for pool in forms.pool_set & touched if forms.pools else ():
            self._evaluate_pool(pool)

    def _evaluate_row(self, row: int, restructured: set[int]) -> None:
        fleet, forms = self._fleet, self._forms
        if not fleet.alive.item(row):
            return
        tree = forms.tree_at.item(fleet.root.item(row))
        code = self._code.item(tree)
        if code == EXCLUDED or tree in restructured:
            return
        self.evaluated += 1
        known = self._codes[code]
        form = self._form_bits(forms.variants[known.variant].form)
        bits = form.replaced(known.bits, forms.position.item(row), row)
        if bits != known.bits:
            self._put(tree, self._code_of(known.variant, bits))

    def _evaluate_tree(self, tree: int) -> None:
        forms = self._forms
        self.evaluated += 1
        root, form, code = forms.root.item(tree), forms.form_of.item(tree), EXCLUDED
        if form >= 0 and self._terms.root_allowed(root):
            bits = self._form_bits(forms.forms[form]).of(forms.rows_of(tree), root)
            code = self._code_of(forms.variant_of.item(tree), bits)
        self._put(tree, code)

    def _put(self, tree: int, code: int) -> None:
        before = self._code.item(tree)
        if code == before:
            return
        self._code[tree] = code
        self._changed()
        if self._flipping and self._is_local(before) != self._is_local(code):
            self.flips.append(self._forms.root.item(tree))

    def _evaluate_pool(self, pool: int) -> None:
        bits = self._terms.pool.of_pool(pool)
        if bits == self._pool_bits[pool]:
            return
        self._pool_bits[pool] = bits
        flipped = []
        for code in self._with_pool[pool]:
            known = self._codes[code]
            was = known.solution
            known.solution = None
            if self._flipping and (was is None or was.local) != self._is_local(code):
                flipped.append(code)
        self._changed()
        if flipped:
            trees = np.flatnonzero(np.isin(self._code[: self._forms.n_trees], flipped))
            for root in self._forms.root[trees].tolist():
                self.flips.append(root)

    def _build(self) -> None:
        """Evaluate all trees at once."""
        fleet, forms = self._fleet, self._forms
        forms.catch_up()
        self._at, self._structure_at, self._epoch = (
            fleet.invalidations.end,
            forms.restructured.end,
            forms.epoch,
        )
        self.full_evaluations += 1
        self.flips.forget()
        self._flipping = False
        self._codes = [_Code(-1, 0)]
        self._known: dict[tuple[int, int], int] = {}
        self._solutions: dict[object, TreeSolution] = {}
        self._with_pool: defaultdict[int, list[int]] = defaultdict(list)
        self._forms_bits: dict[int, FormBits] = {}
        self._pool_bits = {pool: self._terms.pool.of_pool(pool) for pool in forms.pools}
        self._code = np.full(max(forms.n_trees, 1), EXCLUDED, dtype=np.int32)
        self._changed()
        form_of = forms.form_of[: forms.n_trees]
        counts = np.bincount(form_of[form_of >= 0], minlength=len(forms.forms))
        served = self._terms.served() if counts.max(initial=0) >= FEW_TREES else []
        for number in np.flatnonzero(counts).tolist():
            if counts.item(number) < FEW_TREES:
                for tree in forms.forms[number].columns(forms)[0].tolist():
                    self._evaluate_tree(tree)
            else:
                self._evaluate_form(forms.forms[number], served)
        self._most_codes = 2 * len(self._codes) + _SPARE_CODES

    def _evaluate_form(self, form: Form, served: list[Bools]) -> None:
        forms = self._forms
        trees, rows = form.columns(forms)
        roots = forms.root[trees]
        bits, places = self._form_bits(form).of_all(rows, roots, served)
        variants = forms.variant_of[trees]
        if (variants == variants[0]).all():
            variant = int(variants[0])
            codes = np.array([self._code_of(variant, each) for each in bits], dtype=np.int32)[places]
        else:
            pairs, places = np.unique(variants.astype(np.int64) * len(bits) + places, return_inverse=True)
            codes = np.array(
                [self._code_of(pair // len(bits), bits[pair % len(bits)]) for pair in pairs.tolist()],
                dtype=np.int32,
            )[places]
        codes[~self._terms.roots_allowed(roots)] = EXCLUDED
        self._code[trees] = codes

    # Reading

    def roots(self) -> Rows:
        """The roots, ascending, of the trees that may have candidates. Some of these trees may have none."""
        return self._hopeful

    def local_roots(self) -> Rows:
        """The roots, ascending, of the trees with a candidate that takes something from the tree itself.

        This and the other questions about such candidates are the scheduler's, and spend no work.
        """
        self._spend(None)
        self._flipping = True
        in_use = np.flatnonzero(np.bincount(self._codes_now(), minlength=len(self._codes)))
        local = np.zeros(len(self._codes), dtype=np.bool_)
        local[in_use] = [self._is_local(code) for code in in_use.tolist()]
        return self._roots_with(local)

    def is_local(self, root: int) -> bool:
        """Whether a root is one of `local_roots`. False for a row that is no root."""
        if self._reading is not None:
            self._spend(None)
        tree = self._forms.tree_at.item(root) if root < len(self._forms.tree_at) else -1
        return 0 <= tree < len(self._code) and self._is_local(self._code.item(tree))

    def assignments(self, roots: Rows) -> Iterator[tuple[int, Iterator[Assignment]]]:
        """Each of some roots with the assignments of its tree, as rows in placement's order.

        Iterating over assignments raises `TooMuchWork`.
        """
        forms = self._forms
        trees = forms.trees_of(roots)
        for root, tree, code, first in zip(
            roots.tolist(),
            trees.tolist(),
            self._code[trees].tolist(),
            forms.first[trees].tolist(),
            strict=True,
        ):
            yield root, self._assignments_of(code if tree >= 0 else EXCLUDED, first)

    def assignments_at(self, root: int) -> Iterator[Assignment]:
        """The assignments of one tree as rows, in placement's order. Raises `TooMuchWork`."""
        tree = self._forms.tree_at.item(root)
        code = self._code.item(tree) if tree >= 0 else EXCLUDED
        return self._assignments_of(code, self._forms.first.item(tree))

    def _assignments_of(self, code: int, first: int) -> Iterator[Assignment]:
        """The assignments of a tree with a code whose rows begin at ``first``."""
        if code == EXCLUDED:
            return iter(())
        known = self._codes[code]
        solution = known.solution or self._solution(code)
        form, pools = self._forms.variants[known.variant]
        rows = self._forms.rows[first : first + len(form.parents)].tolist()
        if pools:
            serving = [pool for pool, _ in pools if self._pool_bits[pool]]
            rows = [rows[at] if at >= 0 else serving[~at] for at in solution.order]
        return solution.assignments(rows)

    def local_at(self, root: int) -> Iterator[Candidate]:
        """The candidates of one tree that take something from the tree itself, in placement's order."""
        self._spend(None)
        fleet, needs = self._fleet, self.needs
        choices: Iterator[Choice] = ((root, rows) for rows in self.assignments_at(root))
        if self._forms.pools or not any(need.resources for need in needs):
            choices = (choice for choice in choices if takes_from_tree(fleet, needs, choice))
        return (candidate_of(fleet, needs, choice) for choice in choices)

    def _is_local(self, code: int) -> bool:
        return code != EXCLUDED and self._solution(code).local

    @cached_property
    def _hopeful(self) -> Rows:
        in_use = np.flatnonzero(np.bincount(self._codes_now(), minlength=len(self._codes)))
        hopeful = np.zeros(len(self._codes), dtype=np.bool_)
        hopeful[in_use] = [code != EXCLUDED and not self._solution(code).hopeless for code in in_use.tolist()]
        return self._roots_with(hopeful)

    def _codes_now(self) -> Int32:
        return self._code[: self._forms.n_trees]

    def _roots_with(self, wanted: Bools) -> Rows:
        roots = self._forms.root[: self._forms.n_trees][wanted[self._codes_now()]]
        return roots if (roots[1:] >= roots[:-1]).all() else np.sort(roots)

    def _changed(self) -> None:
        self.__dict__.pop("_hopeful", None)

    # Codes and answers

    def _code_of(self, variant: int, bits: int) -> int:
        code = self._known.get((variant, bits))
        if code is None:
            code = self._known[variant, bits] = len(self._codes)
            self._codes.append(_Code(variant, bits))
            for pool, _ in self._forms.variants[variant].pools:
                self._with_pool[pool].append(code)
        return code

    def _form_bits(self, form: Form) -> FormBits:
        found = self._forms_bits.get(form.number)
        if found is None:
            found = self._forms_bits[form.number] = FormBits(self._terms, form)
        return found

    def _solution(self, code: int) -> TreeSolution:
        known = self._codes[code]
        if known.solution is None:
            form, pools = self._forms.variants[known.variant]
            serving = tuple(self._serving(pools)) if pools else ()
            key = (form.number, known.bits, serving)
            solution = self._solutions.get(key)
            if solution is None:
                if len(self._solutions) % _MOST_SEARCHED == _MOST_SEARCHED - 1:
                    self._forget_assignments()
                if len(self._solutions) >= _SPARE_CODES:
                    self._solutions.clear()
                self.searches += 1
                solution = TreeSolution(self._terms, self._form_bits(form), known.bits, serving, self._meter)
                self._solutions[key] = solution
            known.solution = solution
        return known.solution

    def _serving(self, pools: Iterable[tuple[int, int]]) -> Iterator[Pool]:
        """The pools of a variant that could serve something, each with the next of them above it."""
        able = [(pool, before) for pool, before in pools if self._pool_bits[pool]]
        number = {pool: n for n, (pool, _) in enumerate(able)}
        for pool, before in able:
            above = self._fleet.parent.item(pool)
            while above >= 0 and above not in number:
                above = self._fleet.parent.item(above)
            yield Pool(before, self._pool_bits[pool], number.get(above, -1))

    def _forget_assignments(self) -> None:
        for solution in self._solutions.values():
            solution.forget()
