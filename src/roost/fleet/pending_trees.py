"""The trees that an evaluation of all trees has still to evaluate, in parts.

A part is done or not: an operation that runs out of work continues with the same part in its next call.
"""

from typing import Final, NamedTuple

import numpy as np

from roost.fleet.columns import Bools
from roost.fleet.tree_forms import FEW_TREES, TreeForms

_PROVIDERS: Final = 2_000
"""Providers of a part, unless a single form or tree has more."""


class PendingPart(NamedTuple):
    """Forms whose trees are evaluated as columns, and trees of rare forms. One of the two is empty."""

    forms: list[int]
    trees: list[int]


class PendingTrees:
    """The parts that are left, the next one last. ``done``: the number of parts that are done."""

    def __init__(self, parts: list[PendingPart]) -> None:
        self._parts = parts
        self.done = 0

    @classmethod
    def of(cls, forms: TreeForms, lacking: Bools) -> "PendingTrees":
        """Return all trees but those of the ``lacking`` forms, bool[len(forms.forms)]."""
        form_of = forms.form_of[: forms.n_trees]
        counts = np.bincount(form_of[form_of >= 0], minlength=len(forms.forms))
        counts[lacking] = 0
        common = np.flatnonzero(counts >= FEW_TREES).tolist()
        rare = np.flatnonzero((form_of >= 0) & (counts[form_of] > 0) & (counts[form_of] < FEW_TREES)).tolist()
        sizes = [len(form) for form in forms.forms]
        of_forms = _parts(common, [sizes[form] * counts.item(form) for form in common])
        of_trees = _parts(rare, [sizes[form] for form in form_of[rare].tolist()])
        return cls(
            [PendingPart([], trees) for trees in of_trees] + [PendingPart(forms, []) for forms in of_forms]
        )

    def __bool__(self) -> bool:
        return bool(self._parts)

    def next(self) -> PendingPart:
        """Return the next part. It stays the next one until `drop`."""
        return self._parts[-1]

    def drop(self) -> None:
        """Count the next part as done."""
        self._parts.pop()
        self.done += 1


def _parts(numbers: list[int], sizes: list[int]) -> list[list[int]]:
    """Cut numbers into parts, each with `_PROVIDERS` at most or one number."""
    parts: list[list[int]] = []
    left = 0
    for number, size in zip(numbers, sizes, strict=True):
        if not parts or size > left:
            parts.append([])
            left = _PROVIDERS
        parts[-1].append(number)
        left -= size
    return parts
