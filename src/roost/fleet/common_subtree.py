"""The condition ``same_subtree``: one of the providers of its groups is at or above all of them.

The providers that serve the groups so far have a lowest common position at or above them, their *meet*. The
positions at or above all of them are the meet and its ancestors. So the meet, and whether it serves a group
itself, decide which positions may come next, and these are looked up: a query of two groups that pairs N
devices of a tree finds N pairs, and does not look at N².
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from roost.fleet.tree_layout import TreeLayout
from roost.fleet.work import Meter

_NONE = -1


class SubtreeState(NamedTuple):
    """The meet of the positions that serve the groups so far, and whether it is one of them."""

    meet: int
    serves: bool


class TreeOrder:
    """The positions of a layout in depth-first order: a subtree is a range of numbers.

    ``number``: of each position; ``end``: the number after those of its subtree. ``downwards``: the
    positions, parents before children.
    """

    def __init__(self, ancestor: Sequence[int]) -> None:
        self.ancestor = ancestor
        children: list[list[int]] = [[] for _ in ancestor]
        roots: list[int] = []
        for position, above in enumerate(ancestor):
            (roots if above < 0 else children[above]).append(position)
        self.downwards: list[int] = []
        self.number = [0] * len(ancestor)
        self.end = [0] * len(ancestor)
        untaken = roots[::-1]
        while untaken:
            position = untaken.pop()
            self.number[position] = len(self.downwards)
            self.downwards.append(position)
            untaken += reversed(children[position])
        for position in reversed(self.downwards):
            self.end[position] = max(self.end[position], self.number[position] + 1)
            if (above := ancestor[position]) >= 0:
                self.end[above] = max(self.end[above], self.end[position])

    def is_below(self, position: int, above: int) -> bool:
        """Return whether a position is another one or below it."""
        return self.number[above] <= self.number[position] < self.end[above]


class CommonSubtree:
    """One ``same_subtree`` in one layout.

    ``depths``: those of its groups in the search, ascending; ``options``: the positions of each term.
    """

    def __init__(self, depths: Sequence[int], order: TreeOrder, options: Sequence[list[int]]) -> None:
        self.depths = depths
        self._order = order
        # By depth: its options by their number, the next of them at or above each position, and the highest
        # one there of all later depths. Depths of terms that are alike share these.
        self._sorted: dict[int, tuple[list[int], list[int]]] = {}
        self._next_above: dict[int, list[int]] = {}
        self._highest_later: dict[int, list[int]] = {}
        numbered: dict[int, tuple[list[int], list[int]]] = {}
        above: dict[int, list[int]] = {}
        later: set[int] = set()
        highest = [_NONE] * len(order.ancestor)
        for depth in reversed(depths):
            self._highest_later[depth] = highest
            its = options[depth]
            if id(its) not in numbered:
                by_number = sorted(its, key=order.number.__getitem__)
                numbered[id(its)] = [order.number[each] for each in by_number], by_number
                above[id(its)] = self._nearest(set(its))
                later |= set(its)
                highest = self._topmost(later)
            self._sorted[depth] = numbered[id(its)]
            self._next_above[depth] = above[id(its)]

    @staticmethod
    def cost(depths: Sequence[int], layout: TreeLayout, options: Sequence[list[int]]) -> int:
        """Return the units of work to make one."""
        kinds = len({id(options[depth]) for depth in depths})
        return (2 * kinds + 1) * len(layout.ancestor)

    def after(self, state: SubtreeState | None, position: int, meter: Meter) -> SubtreeState:
        """Return the state after a position serves one more group. ``state``: None before the first."""
        if state is None:
            return SubtreeState(position, True)
        order, meet = self._order, state.meet
        if order.is_below(position, meet):
            return state if position != meet or state.serves else SubtreeState(meet, True)
        if order.is_below(meet, position):
            return SubtreeState(position, True)
        steps = 0
        while not order.is_below(position, meet):
            meet = order.ancestor[meet]
            steps += 1
        meter.spend(steps)
        return SubtreeState(meet, False)

    def number_of_next(self, state: SubtreeState, depth: int) -> int:
        """Return the number of options of a depth that `next` has to look at."""
        first, end, _ = self._below(state, depth)
        return 1 + end - first

    def next(self, state: SubtreeState, depth: int, meter: Meter) -> list[int]:
        """Return the options of a depth with which the groups can still have a common subtree, ascending."""
        first, end, apex = self._below(state, depth)
        found = self._sorted[depth][1][first:end]
        # An option above the meet would itself be the provider at or above all others.
        order, above = self._order, self._next_above[depth]
        position = state.meet if apex == _NONE else order.ancestor[apex]
        higher = []
        while position != _NONE and (position := above[position]) != _NONE:
            higher.append(position)
            position = order.ancestor[position]
        meter.spend(len(found) + len(higher) + 1)
        return sorted(found + higher)

    def is_open(self, state: SubtreeState, depth: int, meter: Meter) -> bool:
        """Return whether each group after a depth has an option with which there may be a common subtree.

        A necessary condition, not a sufficient one. ``state``: that after the group at ``depth``.
        """
        apex = self._apex(state, depth)
        order = self._order
        following = self.depths[bisect_right(self.depths, depth) :]
        meter.spend(len(following) // 2)
        for later in following:
            if self._next_above[later][state.meet] != _NONE:
                continue
            if apex == _NONE:
                return False
            numbers = self._sorted[later][0]
            first = bisect_left(numbers, order.number[apex])
            if first == len(numbers) or numbers[first] >= order.end[apex]:
                return False
        return True

    def allows(self, state: SubtreeState, depth: int, position: int) -> bool:
        """Return whether an option of a depth is one of `next`."""
        apex = self._apex(state, depth)
        order = self._order
        return (apex != _NONE and order.is_below(position, apex)) or order.is_below(state.meet, position)

    def _below(self, state: SubtreeState, depth: int) -> tuple[int, int, int]:
        """Return the range of the options of a depth at or below the apex, by number, and the apex."""
        apex = self._apex(state, depth)
        if apex == _NONE:
            return 0, 0, apex
        numbers = self._sorted[depth][0]
        first = bisect_left(numbers, self._order.number[apex])
        return first, bisect_left(numbers, self._order.end[apex], first), apex

    def _apex(self, state: SubtreeState, depth: int) -> int:
        """Return the highest position at or above all serving ones that serves, or may serve, a group."""
        apex = self._highest_later[depth][state.meet]
        return state.meet if apex == _NONE and state.serves else apex

    def _nearest(self, among: set[int]) -> list[int]:
        """Return for each position the next one at or above it of a set."""
        found = [_NONE] * len(self._order.ancestor)
        for position, above in self._downwards():
            found[position] = position if position in among else found[above] if above >= 0 else _NONE
        return found

    def _topmost(self, among: set[int]) -> list[int]:
        """Return for each position the highest one at or above it of a set."""
        found = [_NONE] * len(self._order.ancestor)
        for position, above in self._downwards():
            highest = found[above] if above >= 0 else _NONE
            found[position] = position if highest == _NONE and position in among else highest
        return found

    def _downwards(self) -> Iterator[tuple[int, int]]:
        """Return each position with the one above it, parents before children."""
        ancestor = self._order.ancestor
        return ((position, ancestor[position]) for position in self._order.downwards)
