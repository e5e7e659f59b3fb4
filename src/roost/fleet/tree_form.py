"""The form of a tree: trees whose providers have the same parents and resource classes have one form.

The providers of a tree are numbered by ascending row; the number is the *position* of a provider.

A *variant* of a form adds the pools: the sharing providers that serve a tree, each with its place among the
positions by row.
"""

from typing import NamedTuple

from roost.fleet.columns import Rows

FormKey = tuple[tuple[int, tuple[str, ...]], ...]
"""For each position its parent's position, -1 for none, and its resource classes, sorted."""

ServingPools = tuple[tuple[int, int], ...]
"""The pools of a tree by ascending row: the row of each, and the number of the tree's positions before it."""


class TreeForm:
    """Trees whose providers have the same parents and the same classes.

    By position: ``parents``, the position of the parent; ``classes``, of which the provider may have
    inventories; ``class_sets``, the number of this set of classes in `TreeForms.class_sets`.
    ``all_classes``: those of all positions. ``columns``: the cache of `TreeForms.columns_of`.
    """

    def __init__(self, number: int, key: FormKey, class_sets: "ClassSets") -> None:
        self.number = number
        self.parents = [parent for parent, _ in key]
        self.class_sets = [class_sets.number(classes) for _, classes in key]
        self.classes = [class_sets.sets[number] for number in self.class_sets]
        self.all_classes = frozenset[str]().union(*self.classes)
        self.columns: tuple[Rows, Rows] | None = None

    def __len__(self) -> int:
        return len(self.parents)

    def changed(self) -> None:
        """Drop the cached columns after trees came or went."""
        self.columns = None


class ClassSets:
    """The sets of resource classes that providers have, numbered. A set keeps its number.

    Thousands of devices have few different sets, so a query evaluates its kinds once for each set.
    """

    def __init__(self) -> None:
        self.sets: list[frozenset[str]] = []
        self._numbers: dict[tuple[str, ...], int] = {}

    def number(self, classes: tuple[str, ...]) -> int:
        """Return the number of a set. ``classes``: sorted."""
        found = self._numbers.get(classes)
        if found is None:
            found = self._numbers[classes] = len(self.sets)
            self.sets.append(frozenset(classes))
        return found


class FormVariant(NamedTuple):
    """A form and the pools that serve trees of this form."""

    form: TreeForm
    pools: ServingPools
