"""The trees of a fleet by form, brought up to date after each change.

The rows of all trees of one form are a matrix of positions and trees, so that a query is evaluated for all at
once.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from roost.fleet.columns import Int32, Rows, distinct, grown
from roost.fleet.fleet import Fleet
from roost.fleet.invalidation_log import InvalidationLog
from roost.fleet.pools import SharingPools
from roost.fleet.reach import trees_served
from roost.fleet.tree_form import ClassSets, FormKey, FormVariant, ServingPools, TreeForm

FEW_TREES = 8
"""Trees of a form below which they are evaluated one by one, because columns have a fixed cost."""
_SPARE_VARIANTS = 4_096
"""Most variants left unused by changes of pools before all trees are numbered anew."""
_RESHAPED_AT_ONCE = 4_096
"""Changed rows above which all trees are numbered anew: to number a tree by itself takes 30 µs."""


class TreeForms:
    """The trees of a fleet by form.

    A tree has a number below ``n_trees``, which is not used again when the tree is gone. Columns by tree:
    ``root`` intp, the row of the root; ``form_of`` int32, -1 if the tree is gone; ``variant_of`` int32;
    ``first`` intp, where its providers begin in ``rows``. Columns by row: ``tree_at`` int32, the tree of a
    root, -1 for others; ``position`` int32.

    ``epoch`` rises when everything is numbered anew. ``restructured`` has the trees that came, went, or have
    changed in anything but amounts. ``regroupings`` rises when a pool serves other trees than before: then
    the variant of any tree may have changed.
    """

    epoch: int
    n_trees: int
    rows_used: int
    restructured: InvalidationLog
    forms: list[TreeForm]
    class_sets: ClassSets
    variants: list[FormVariant]
    pools: SharingPools
    regroupings: int
    root: Rows
    first: Rows
    rows: Rows
    form_of: Int32
    variant_of: Int32
    tree_at: Int32
    position: Int32

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._at = 0
        self.epoch = 0
        self._build()

    def catch_up(self) -> None:
        """Apply the fleet's changes since the last call."""
        fleet, end = self._fleet, self._fleet.reshaped.end
        if end == self._at:
            return
        touched = fleet.reshaped.since(self._at)
        if (
            touched is None
            or len(touched) > _RESHAPED_AT_ONCE
            or max(self.rows_used, self.n_trees) > 2 * len(fleet) + _RESHAPED_AT_ONCE
            or len(self.variants) > self._most_variants
            or (differing := self.pools.take_in(touched)) is None
        ):
            self.epoch += 1
            self._build()
            return
        self._at = end
        self.tree_at = grown(self.tree_at, fleet.n_rows, -1)
        self.position = grown(self.position, fleet.n_rows, -1)
        for pool in differing:
            self._regroup(pool)
        alive = {row for row in touched if fleet.alive.item(row)}
        for root in {fleet.root.item(row) for row in alive} | touched:
            if fleet.alive.item(root) and fleet.parent.item(root) < 0:
                self._put(root)
            elif self.tree_at.item(root) >= 0:
                self._remove(root)

    def rows_of(self, tree: int) -> list[int]:
        """Return the rows of a tree's providers by position."""
        first = self.first.item(tree)
        rows: list[int] = self.rows[first : first + len(self.forms[self.form_of.item(tree)])].tolist()
        return rows

    def columns_of(self, form: TreeForm) -> tuple[Rows, Rows]:
        """Return the trees of a form, intp[n], and the row at each position, intp[positions, n]."""
        if form.columns is None:
            trees = np.flatnonzero(self.form_of[: self.n_trees] == form.number)
            places = self.first[trees] + np.arange(len(form))[:, np.newaxis]
            form.columns = trees, self.rows[places]
        return form.columns

    def trees_of(self, roots: Rows) -> Rows:
        """Return the numbers of the trees with these roots."""
        return self.tree_at[roots].astype(np.intp)

    @property
    def scattered(self) -> int:
        """The number of trees whose form few other trees have."""
        form_of = self.form_of[: self.n_trees]
        sizes = np.bincount(form_of[form_of >= 0], minlength=len(self.forms))
        return int(sizes[sizes < FEW_TREES].sum())

    # All trees at once

    def _build(self) -> None:
        fleet = self._fleet
        self._at = fleet.reshaped.end
        self.restructured = InvalidationLog()
        self.forms = []
        self.class_sets = ClassSets()
        self._form_at: dict[FormKey, TreeForm] = {}
        self.variants = []
        self._variant_at: dict[tuple[int, ServingPools], int] = {}
        rows = fleet.rows()
        roots = fleet.roots(rows)
        order = np.argsort(roots, kind="stable")
        self.rows = rows[order]
        self.rows_used = len(rows)
        grouped = roots[order]
        starts = np.ones(len(rows), dtype=np.bool_)
        starts[1:] = grouped[1:] != grouped[:-1]
        self.first = np.flatnonzero(starts)
        self.n_trees = len(self.first)
        self.root = grouped[self.first]
        self.tree_at = np.full(fleet.n_rows, -1, dtype=np.int32)
        self.tree_at[self.root] = np.arange(self.n_trees)
        sizes = np.diff(np.append(self.first, len(rows)))
        self.position = np.full(fleet.n_rows, -1, dtype=np.int32)
        self.position[self.rows] = np.arange(len(rows)) - self.first.repeat(sizes)
        self.form_of = np.zeros(self.n_trees, dtype=np.int32)
        self._number_forms(sizes)
        bare = np.array([self._variant(form, ()) for form in self.forms], dtype=np.int32)
        self.variant_of = bare[self.form_of]
        self.pools = SharingPools(fleet)
        self.regroupings = 0
        for pool in self.pools.rows:
            self._serve(pool, self.trees_of(trees_served(fleet, pool)))
        self._most_variants = 2 * len(self.variants) + _SPARE_VARIANTS

    def _number_forms(self, sizes: Rows) -> None:
        """Find the form of each tree: trees with equal sequences of parents and classes have the same."""
        fleet, rows = self._fleet, self.rows
        kinds: Rows = np.zeros(len(rows), dtype=np.intp)
        for name in sorted(fleet.inventoried_classes()):
            has = fleet.inventory_columns(name).slots(rows) >= 0
            _, kinds = distinct(2 * kinds + has)
        parents = fleet.parent[rows]
        above = np.where(parents >= 0, self.position[parents], -1)
        _, kinds = distinct(kinds * (int(sizes.max(initial=0)) + 1) + above + 1)
        rare: list[int] = []
        for size in np.flatnonzero(np.bincount(sizes)).tolist():
            trees = np.flatnonzero(sizes == size)
            if len(trees) < FEW_TREES:
                # Columns do not pay for a single tree of thousands of providers.
                rare += trees.tolist()
                continue
            sequences = kinds[self.first[trees][:, np.newaxis] + np.arange(size)]
            code = np.zeros(len(trees), dtype=np.intp)
            for position in range(size):
                _, code = distinct(code * (int(kinds.max()) + 1) + sequences[:, position])
            _, example, form = np.unique(code, return_index=True, return_inverse=True)
            self.form_of[trees] = self._forms_of(trees[example].tolist())[form]
        self.form_of[rare] = self._forms_of(rare)

    def _forms_of(self, trees: Sequence[int]) -> Int32:
        """Return the numbers of the forms of some trees: int32[len(trees)]."""
        ends = [self.first.item(tree + 1) if tree + 1 < self.n_trees else self.rows_used for tree in trees]
        rows = [
            self.rows[self.first.item(tree) : end].tolist() for tree, end in zip(trees, ends, strict=True)
        ]
        keys = self._keys_of(rows)
        return np.array([self._form(key).number for key in keys], dtype=np.int32)

    # Variants: a pool affects only those of the trees that it serves

    def _regroup(self, pool: int) -> None:
        """Update the variants of the trees that a pool begins or ceases to serve."""
        self.regroupings += 1
        variants = np.array(
            [any(pool == each for each, _ in one.pools) for one in self.variants], dtype=np.bool_
        )
        here = self.form_of[: self.n_trees] >= 0
        before = variants[self.variant_of[: self.n_trees]] & here
        now = np.zeros(self.n_trees, dtype=np.bool_)
        if pool in self.pools:
            served = self.trees_of(trees_served(self._fleet, pool))
            now[served[served >= 0]] = True
            now &= here
        self._leave(pool, np.flatnonzero(before & ~now))
        self._serve(pool, np.flatnonzero(now & ~before))

    def _serve(self, pool: int, trees: Rows) -> None:
        """Add a pool to the variants of some trees."""
        before = self._before(pool, trees)
        most = int(before.max(initial=0)) + 1
        parts, inverse = distinct(self.variant_of[trees].astype(np.intp) * most + before)
        found = []
        for part in parts:
            variant, at = divmod(part, most)
            form, pools = self.variants[variant]
            found.append(self._variant(form, tuple(sorted((*pools, (pool, at))))))
        self.variant_of[trees] = np.array(found, dtype=np.int32)[inverse]

    def _leave(self, pool: int, trees: Rows) -> None:
        """Remove a pool from the variants of some trees."""
        parts, inverse = distinct(self.variant_of[trees].astype(np.intp))
        found = []
        for variant in parts:
            form, pools = self.variants[variant]
            found.append(self._variant(form, tuple(each for each in pools if each[0] != pool)))
        self.variant_of[trees] = np.array(found, dtype=np.int32)[inverse]

    def _before(self, row: int, trees: Rows) -> Rows:
        """Return the number of positions of each tree that have a lower row: intp[len(trees)]."""
        sizes = np.array([len(form) for form in self.forms], dtype=np.intp)[self.form_of[trees]]
        found: Rows = np.zeros(len(trees), dtype=np.intp)
        found[self.rows[self.first[trees] + sizes - 1] < row] = -1
        found = np.where(found < 0, sizes, 0)
        for index in np.flatnonzero((found == 0) & (self.rows[self.first[trees]] < row)).tolist():
            found[index] = sum(each < row for each in self.rows_of(trees.item(index)))
        return found

    # One tree

    def _put(self, root: int) -> None:
        """Number a tree that is new or has changed."""
        tree = self.tree_at.item(root)
        rows = sorted(self._fleet.subtree(root))
        if tree >= 0 and self.rows_of(tree) == rows:
            self._set_form(tree, rows)
            return
        if tree < 0:
            tree = self._add(root)
        else:
            self.forms[self.form_of.item(tree)].changed()
        self.first[tree] = self.rows_used
        self.rows = grown(self.rows, self.rows_used + len(rows), -1)
        self.rows[self.rows_used : self.rows_used + len(rows)] = rows
        self.rows_used += len(rows)
        self.position[rows] = np.arange(len(rows))
        self._set_form(tree, rows)

    def _set_form(self, tree: int, rows: Sequence[int]) -> None:
        was = self.form_of.item(tree)
        form = self._form(next(self._keys_of((rows,))))
        if form.number != was:
            if was >= 0:
                self.forms[was].changed()
            self.form_of[tree] = form.number
            form.changed()
        pools = self.pools.serving(rows, self.root.item(tree))
        served = tuple((pool, sum(row < pool for row in rows)) for pool in pools)
        self.variant_of[tree] = self._variant(form, served)
        self.restructured.append(tree)

    def _add(self, root: int) -> int:
        tree = self.n_trees
        self.n_trees += 1
        self.root = grown(self.root, self.n_trees, -1)
        self.first = grown(self.first, self.n_trees, 0)
        self.form_of = grown(self.form_of, self.n_trees, -1)
        self.variant_of = grown(self.variant_of, self.n_trees, 0)
        self.root[tree] = root
        self.tree_at[root] = tree
        return tree

    def _remove(self, root: int) -> None:
        tree = self.tree_at.item(root)
        self.forms[self.form_of.item(tree)].changed()
        self.form_of[tree] = self.tree_at[root] = -1
        self.restructured.append(tree)

    # Forms and variants

    def _keys_of(self, trees: Sequence[Sequence[int]]) -> Iterator[FormKey]:
        """Yield the keys of trees with these rows."""
        fleet = self._fleet
        rows = [row for tree in trees for row in tree]
        names: list[tuple[str, ...]] = [()] * len(rows)
        columns = np.array(rows, dtype=np.intp)
        for name in sorted(fleet.inventoried_classes()):
            for place in np.flatnonzero(fleet.inventory_columns(name).slots(columns) >= 0).tolist():
                names[place] += (name,)
        left = iter(names)
        for tree in trees:
            parents = fleet.parent[np.array(tree, dtype=np.intp)].tolist()
            above = [self.position.item(parent) if parent >= 0 else -1 for parent in parents]
            yield tuple(zip(above, islice(left, len(tree)), strict=True))

    def _form(self, key: FormKey) -> TreeForm:
        form = self._form_at.get(key)
        if form is None:
            form = self._form_at[key] = TreeForm(len(self.forms), key, self.class_sets)
            self.forms.append(form)
        return form

    def _variant(self, form: TreeForm, pools: ServingPools) -> int:
        key = (form.number, pools)
        number = self._variant_at.get(key)
        if number is None:
            number = self._variant_at[key] = len(self.variants)
            self.variants.append(FormVariant(form, pools))
        return number
