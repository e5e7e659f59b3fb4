"""The candidates of the trees that can serve one query."""

from collections.abc import Iterator
from itertools import islice

from roost.fleet.assignments import Assignment
from roost.fleet.choices import Choice, candidate_of, takes_from_tree
from roost.fleet.columns import Rows
from roost.fleet.feasible_trees import FeasibleTrees
from roost.fleet.splitting import with_parts
from roost.fleet.tree_codes import EXCLUDED, LACKING
from roost.fleet.work import TREE
from roost.model.allocation import Candidate

_ROWS_READ = 10
"""Rows of a tree that are read for one unit of work."""


class Feasibility(FeasibleTrees):
    """The trees that can serve one query, and their candidates, as of the last `catch_up`.

    Only `catch_up` changes the state that readers see. So a decision that claims from a tree goes on reading
    the candidates that the tree had when the decision began.
    """

    def assignments(self, roots: Rows) -> Iterator[tuple[int, Iterator[Assignment]]]:
        """Yield each of some roots with the assignments of its tree, as rows in placement's order.

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
        """Return the assignments of one tree as rows, in placement's order. Raises `TooMuchWork`."""
        tree = self._forms.tree_at.item(root)
        code = self._code.item(tree) if tree >= 0 else EXCLUDED
        return self._assignments_of(code, self._forms.first.item(tree))

    def _assignments_of(self, code: int, first: int) -> Iterator[Assignment]:
        """Return the assignments of a tree with a code whose rows begin at ``first``."""
        if code <= LACKING:
            return iter(())
        codes = self._codes
        rows = codes.rows(code, first)
        self._meter.spend(TREE + len(rows) // _ROWS_READ)
        return codes.solution(code).assignments(rows)

    def at(self, root: int) -> Iterator[Candidate]:
        """Return the candidates of one tree, in placement's order: a split, if there are no others.

        Raises `TooMuchWork`.
        """
        if self._is_split(root):
            return islice(self.splits_at(root), 1)
        return (candidate_of(self._fleet, self.needs, (root, rows)) for rows in self.assignments_at(root))

    def local_at(self, root: int) -> Iterator[Candidate]:
        """Return the candidates of one tree that take something from the tree itself, in placement's order.

        Raises `TooMuchWork`.
        """
        if self._is_split(root):
            return islice(self.splits_at(root), 1)
        fleet, needs = self._fleet, self.needs
        choices: Iterator[Choice] = ((root, rows) for rows in self.assignments_at(root))
        if self._forms.pools or not any(need.resources for need in needs):
            choices = (choice for choice in choices if takes_from_tree(fleet, needs, choice))
        return (candidate_of(fleet, needs, choice) for choice in choices)

    def splits_at(self, root: int) -> Iterator[Candidate]:
        """Yield the split of one tree with each assignment of the unsplit terms. Raises `TooMuchWork`.

        There may be unsplit candidates as well. The parts are computed on the present fleet, with claims made
        since `catch_up`.
        """
        tree = self._forms.tree_at.item(root)
        code = self._code.item(tree) if tree >= 0 else EXCLUDED
        if not self.splits or code <= LACKING or not (solution := self._codes.solution(code)).split:
            return
        parts = self._terms.splitting.parts(self._forms.rows_of(tree))
        if parts is None:
            return
        rows_at = self._codes.rows(code, self._forms.first.item(tree))
        for rows in solution.beside_split(rows_at):
            self._meter.spend(len(parts))
            unsuffixed = {part.row for part in parts}
            unsuffixed.update(
                row for row, need in zip(rows, self._beside, strict=True) if need.suffixes == ("",)
            )
            if self._terms.meet_together(unsuffixed):
                yield with_parts(self._fleet, candidate_of(self._fleet, self._beside, (root, rows)), parts)

    def _is_split(self, root: int) -> bool:
        if not self.splits:
            return False
        tree = self._forms.tree_at.item(root)
        code = self._code.item(tree) if tree >= 0 else EXCLUDED
        return code > LACKING and not self._codes.solution(code).unsplit
