"""The trees that can serve one query, brought up to date after each change of the fleet.

    fleet.reshaped ──────▶ TreeForms      the trees by form, for all queries
    fleet.invalidations ─▶ FeasibleTrees  one for each query: the bits of each tree (`term_bits`), as a code
                               │
                           TreeCodes     one code, and one `TreeSolution`, for all trees with equal form, bits
                                         and pools

After a change the bits of the touched providers are computed again: some microseconds for each. The search
runs only for bits that no tree had before. Pools are separate inputs: when the bits of a pool change, the
solutions that include it are computed again, and trees are looked up only if a result flips.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from roost.fleet.choices import Need
from roost.fleet.columns import Bools, Int32, Rows, distinct, grown
from roost.fleet.errors import TooMuchWork
from roost.fleet.fleet import Fleet
from roost.fleet.invalidation_log import InvalidationLog
from roost.fleet.pending_trees import PendingTrees
from roost.fleet.term_bits import FormBits, QueryTerms, ServedKinds
from roost.fleet.tree_bits import COLUMN, TOGETHER, bits_of_rows, bits_together
from roost.fleet.tree_codes import EXCLUDED, LACKING, SPARE_CODES, TreeCodes
from roost.fleet.tree_form import TreeForm
from roost.fleet.tree_forms import TreeForms
from roost.fleet.work import EVALUATION, TERM
from roost.model.request import CandidateQuery

_NEVER = -1
_BITS_COPIED = 50_000
"""Bits of a tree that are copied for one unit of work."""
_ONE_BY_ONE = 64
"""Most touched rows after which not all trees are evaluated; in a large fleet, a sixteenth of the trees. Also
the most providers in trees of rare forms that are evaluated one by one: for more, vector operations are
faster."""
_FEW_ROWS = 24
"""Most touched rows that are evaluated one by one."""


class _ChangedRow(NamedTuple):
    """A provider whose amounts have changed, with its tree, and its position there."""

    row: int
    tree: int
    form: FormBits
    position: int


class FeasibleTrees:
    """The trees that can serve one query, as of the last `catch_up`, which alone changes them.

    ``flips`` logs the roots for which `is_local` has changed since the first call of `local_roots`; each
    reader keeps its own position in the log. ``splits``: the query allows an amount to be split. Counters for
    tests: ``evaluated`` trees and providers, ``full_evaluations`` of all trees.
    """

    _flipping: bool
    located: bool
    """True once `local_roots` has evaluated all trees. Later changes cost little."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, forms: TreeForms) -> None:
        self._fleet = fleet
        self._forms = forms
        fleet.meter.spend_once(TERM * len(query.groups))
        self._terms = QueryTerms(fleet, query)
        self._meter = fleet.meter
        self.needs = [Need((term.group.suffix,), term.resources) for term in self._terms.terms]
        self._beside = [self.needs[place] for place in self._terms.unsplit]
        self.splits = bool(self._terms.splitting.width)
        self.flips = InvalidationLog()
        self.evaluated = self.full_evaluations = 0
        self._code: Int32 = np.zeros(0, dtype=np.int32)
        self._codes = TreeCodes(fleet, self._terms, forms)
        self._at = self._structure_at = self._epoch = self._regroupings = self._most_codes = _NEVER
        self._pending = PendingTrees([])

    @property
    def searches(self) -> int:
        """The number of layouts that were searched."""
        return self._codes.searches

    @property
    def progress(self) -> int:
        """A number that rises with everything whose result is kept."""
        return self.searches + len(self._terms.positions) + self._pending.done

    # Keeping up

    def catch_up(self) -> None:
        """Apply the fleet's changes, and evaluate the trees that are not evaluated yet.

        Raises `TooMuchWork`; the next call continues.
        """
        if self._fleet.invalidations.end != self._at:
            try:
                self._take_in()
            except TooMuchWork:
                self._at = _NEVER
                raise
        if self._pending:
            with self._meter.once():
                self._evaluate_pending()

    def _take_in(self) -> None:
        fleet, forms = self._fleet, self._forms
        forms.catch_up()
        touched = fleet.invalidations.since(self._at)
        restructured = forms.restructured.since(self._structure_at) if forms.epoch == self._epoch else None
        if (
            touched is None
            or restructured is None
            or len(touched) > max(_ONE_BY_ONE, forms.n_trees // 16)
            or len(self._codes) > self._most_codes >= 0
        ):
            with self._meter.once():
                self._begin_anew()
            return
        self._at, self._structure_at = fleet.invalidations.end, forms.restructured.end
        self._code = grown(self._code, forms.n_trees, EXCLUDED)
        for pool in forms.pools.among(touched):
            self._evaluate_pool(pool)
        for tree in restructured:
            self._evaluate_tree(tree)
        self._evaluate_rows(touched, restructured)
        if self._regroupings != forms.regroupings:
            self._take_in_variants()

    def _evaluate_rows(self, touched: Iterable[int], restructured: set[int]) -> None:
        """Evaluate the trees of providers that have changed in amounts, without ``restructured`` ones."""
        fleet, forms, codes = self._fleet, self._forms, self._codes
        changed: list[_ChangedRow] = []
        for row in touched:
            if not fleet.alive.item(row):
                continue
            tree = forms.tree_at.item(fleet.root.item(row))
            code = self._code.item(tree)
            if code > LACKING and tree not in restructured:
                form = codes.form_bits(forms.variants[codes.variant(code)].form)
                changed.append(_ChangedRow(row, tree, form, forms.position.item(row)))
        self.evaluated += len(changed)
        for (_, tree, form, position), its in zip(changed, self._bits_of(changed), strict=True):
            self._meter.spend_once(form.barred // _BITS_COPIED)
            code = self._code.item(tree)
            known = codes.bits(code)
            bits = form.replaced(known, position, its)
            if self._terms.splitting.width:
                bits = form.split_again(bits, position, forms.rows_of(tree))
            if bits != known:
                self._put(tree, codes.code_of(codes.variant(code), bits))

    def _bits_of(self, changed: Sequence[_ChangedRow]) -> list[int]:
        """Return the bits of providers."""
        if len(changed) <= _FEW_ROWS:
            at = [(form.positions[position], row) for row, _, form, position in changed]
            self._meter.spend_once(sum(EVALUATION * bits.cost for bits, _ in at))
            return [bits.of(row) if bits.width else 0 for bits, row in at]
        rows = np.array([each.row for each in changed], dtype=np.intp)
        numbers = np.array([each.form.numbers[each.position] for each in changed], dtype=np.intp)
        with self._meter.once():
            return bits_of_rows(self._terms, rows, numbers, self._terms.served_kinds(rows.tolist()))

    def _evaluate_tree(self, tree: int) -> None:
        forms = self._forms
        self.evaluated += 1
        root, form, code = forms.root.item(tree), forms.form_of.item(tree), EXCLUDED
        variant = forms.variant_of.item(tree)
        if form >= 0 and self._is_lacking(variant):
            code = LACKING
        elif form >= 0 and self._terms.root_allowed(root):
            its = self._codes.form_bits(forms.forms[form])
            if len(its.positions) > _ONE_BY_ONE:
                with self._meter.once():
                    served = self._terms.served(forms.rows_of(tree))
                self._evaluate_together([tree], served)
                return
            self._meter.spend_once(EVALUATION * its.cost + len(its.positions))
            bits = its.of(forms.rows_of(tree), root)
            code = self._codes.code_of(variant, bits)
        self._put(tree, code)

    def _evaluate_together(self, trees: Sequence[int], served: ServedKinds) -> None:
        """Evaluate trees of different forms."""
        forms, codes = self._forms, self._codes
        its = [codes.form_bits(forms.forms[forms.form_of.item(tree)]) for tree in trees]
        rows_of = [forms.rows_of(tree) for tree in trees]
        roots = [forms.root.item(tree) for tree in trees]
        for tree, bits in zip(trees, bits_together(self._terms, its, rows_of, roots, served), strict=True):
            self._put(tree, codes.code_of(forms.variant_of.item(tree), bits))

    def _put(self, tree: int, code: int) -> None:
        before = self._code.item(tree)
        if code == before:
            return
        self._code[tree] = code
        self._changed()
        if self._flipping and self._codes.is_local(before) != self._codes.is_local(code):
            self.flips.append(self._forms.root.item(tree))

    def _evaluate_pool(self, pool: int) -> None:
        flipped = self._codes.take_in_pool(pool, self._flipping)
        if flipped is None:
            return
        self._changed()
        if flipped:
            self._note_flips(np.flatnonzero(np.isin(self._codes_now(), flipped)))

    def _take_in_variants(self) -> None:
        """Give trees that other pools serve now the codes of their new variants. Their bits are as before."""
        forms = self._forms
        self._regroupings = forms.regroupings
        codes, variants = self._codes_now(), forms.variant_of[: forms.n_trees]
        for tree in np.flatnonzero((codes == LACKING) & ~self._lacking_variants()[variants]).tolist():
            self._evaluate_tree(tree)
        trees = np.flatnonzero((codes > LACKING) & (self._codes.variants()[codes] != variants))
        pairs, inverse = distinct(codes[trees].astype(np.intp) * len(forms.variants) + variants[trees])
        olds, news = [], []
        for pair in pairs:
            old, variant = divmod(pair, len(forms.variants))
            olds.append(old)
            news.append(self._codes.code_of(variant, self._codes.bits(old)))
        self._code[trees] = np.array(news, dtype=np.int32)[inverse]
        self._changed()
        if self._flipping:
            flipped = [
                self._codes.is_local(old) != self._codes.is_local(new)
                for old, new in zip(olds, news, strict=True)
            ]
            self._note_flips(trees[np.array(flipped, dtype=np.bool_)[inverse]])

    def _note_flips(self, trees: Rows) -> None:
        for root in self._forms.root[trees].tolist():
            self.flips.append(root)

    def _begin_anew(self) -> None:
        """Forget everything: all trees are to be evaluated."""
        fleet, forms = self._fleet, self._forms
        self._at, self._structure_at, self._epoch = (
            fleet.invalidations.end,
            forms.restructured.end,
            forms.epoch,
        )
        self._regroupings = forms.regroupings
        self.full_evaluations += 1
        self.flips.forget()
        self._flipping = self.located = False
        self._codes.begin_anew()
        self._code = np.full(max(forms.n_trees, 1), EXCLUDED, dtype=np.int32)
        self._changed()
        lacking = self._lacking_forms()
        form_of = forms.form_of[: forms.n_trees]
        self._code[: forms.n_trees][(form_of >= 0) & lacking[form_of]] = LACKING
        self._pending = PendingTrees.of(forms, lacking)
        self._most_codes = _NEVER

    def _evaluate_pending(self) -> None:
        served: ServedKinds | None = None
        while self._pending:
            part = self._pending.next()
            if part.forms:
                served = served or self._terms.served()
                for number in part.forms:
                    self._evaluate_form(self._forms.forms[number], served)
            self._evaluate_rare(part.trees)
            self._pending.drop()
        self._changed()
        self._most_codes = 2 * len(self._codes) + SPARE_CODES

    def _evaluate_rare(self, trees: Sequence[int]) -> None:
        """Evaluate trees of rare forms. Some may be gone since they were listed."""
        forms = self._forms
        trees = [tree for tree in trees if forms.form_of.item(tree) >= 0]
        rows = [row for tree in trees for row in forms.rows_of(tree)]
        if len(rows) <= _ONE_BY_ONE:
            for tree in trees:
                self._evaluate_tree(tree)
            return
        served = self._terms.served(rows)
        allowed = self._terms.roots_allowed(forms.root[trees])
        self._evaluate_together(np.array(trees)[allowed].tolist(), served)

    def _evaluate_form(self, form: TreeForm, served: ServedKinds) -> None:
        forms = self._forms
        trees, rows = forms.columns_of(form)
        if not len(trees):
            return
        its = self._codes.form_bits(form)
        self._meter.spend_once(its.cost * (COLUMN + len(trees) // TOGETHER) + len(form))
        roots = forms.root[trees]
        bits, places = its.of_all(rows, roots, served)
        variants = forms.variant_of[trees]
        if (variants == variants[0]).all():
            variant = int(variants[0])
            codes = np.array([self._codes.code_of(variant, each) for each in bits], dtype=np.int32)[places]
        else:
            pairs, places = np.unique(variants.astype(np.int64) * len(bits) + places, return_inverse=True)
            codes = np.array(
                [self._codes.code_of(pair // len(bits), bits[pair % len(bits)]) for pair in pairs.tolist()],
                dtype=np.int32,
            )[places]
        codes[~self._terms.roots_allowed(roots)] = EXCLUDED
        self._code[trees] = codes

    def _is_lacking(self, variant: int) -> bool:
        """Return whether the trees of a variant lack a class of the query, and no pool serves them."""
        form, pools = self._forms.variants[variant]
        return not (pools or self._terms.asked <= form.all_classes)

    def _lacking_variants(self) -> Bools:
        """Return `_is_lacking` by variant: bool[len(variants)]."""
        variants = self._forms.variants
        self._meter.spend_once(len(variants) // 2)
        return np.array([self._is_lacking(number) for number in range(len(variants))], dtype=np.bool_)

    def _lacking_forms(self) -> Bools:
        """Return for each form whether all its trees lack a class of the query: bool[len(forms)]."""
        form_of = np.array([form.number for form, _ in self._forms.variants], dtype=np.intp)
        found: Bools = np.ones(len(self._forms.forms), dtype=np.bool_)
        found[form_of[~self._lacking_variants()]] = False
        return found

    # Reading

    def roots(self) -> Rows:
        """Return the roots, ascending, of the trees that may have candidates. Some of them may have none."""
        return self._hopeful

    def local_roots(self) -> Rows:
        """Return the roots, ascending, of the trees with a candidate that takes from the tree itself.

        Raises `TooMuchWork`, as do `is_local` and `are_local`.
        """
        self._flipping = True
        roots = self._roots_with(self._codes.local(self._codes_now()))
        self.located = True
        return roots

    def is_local(self, root: int) -> bool:
        """Return whether a root is one of `local_roots`. False for a row that is no root."""
        tree = self._forms.tree_at.item(root) if root < len(self._forms.tree_at) else -1
        return 0 <= tree < len(self._code) and self._codes.is_local(self._code.item(tree))

    def are_local(self, roots: Rows) -> Bools:
        """Return `is_local` for many rows: bool[len(roots)]."""
        known = roots < len(self._forms.tree_at)
        trees = np.full(len(roots), -1, dtype=np.intp)
        trees[known] = self._forms.trees_of(roots[known])
        trees[trees >= len(self._code)] = -1
        codes = np.where(trees >= 0, self._code[trees], EXCLUDED)
        return self._codes.local(codes)[codes]

    @cached_property
    def _hopeful(self) -> Rows:
        return self._roots_with(self._codes.hopeful(self._codes_now()))

    def _codes_now(self) -> Int32:
        return self._code[: self._forms.n_trees]

    def _roots_with(self, wanted: Bools) -> Rows:
        roots = self._forms.root[: self._forms.n_trees][wanted[self._codes_now()]]
        return roots if (roots[1:] >= roots[:-1]).all() else np.sort(roots)

    def _changed(self) -> None:
        self.__dict__.pop("_hopeful", None)
