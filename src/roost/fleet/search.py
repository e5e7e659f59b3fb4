"""The depth-first search for the assignments of one tree: a provider for each term of a query."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from roost.fleet.common_subtree import CommonSubtree, SubtreeState, TreeOrder
from roost.fleet.fits import has_room
from roost.fleet.query_terms import Term
from roost.fleet.tree_layout import TreeLayout
from roost.fleet.work import SEARCH, TERM, Meter
from roost.model.request import CandidateQuery

_SUBTREE = 3
"""Units of work for each common subtree of a group when the group is assigned."""


class TreeSearch:
    """A depth-first search over the options of a layout.

    The search assigns a position to one term after the other; the *depth* of a term is its number in this
    order. It tracks the amounts that the assigned terms take, and backtracks.

    The search is a loop and not recursive, because a query may have more terms than Python has stack frames.

    A request for one device too many fails only at the last term, and a plain search would first try every
    assignment of the others (33 groups on 32 devices: 32! assignments). So the search looks ahead: it checks
    `_promising` before it begins, and after each isolated choice that the remaining groups can still have a
    provider each. It explores no state again that led to no assignment.
    """

    def __init__(
        self,
        query: CandidateQuery,
        terms: Sequence[Term],
        layout: TreeLayout,
        options: Sequence[list[int]],
        meter: Meter,
    ) -> None:
        """``terms`` in the order of the search, each with its positions in ``options``.

        Each option that the search looks at counts as a unit of work. Raises `TooMuchWork`.
        """
        meter.spend(SEARCH + TERM * len(terms))
        self._meter = meter
        self._terms = terms
        self._options = options
        self._available = layout.available
        self._trait_bits = layout.trait_bits
        self._assigned: list[int] = []
        # By position and class: the amounts that the assigned terms take. Only classes that several terms can
        # take from one position are counted: of other classes every option has room.
        self._taken: dict[tuple[int, str], int] = {}
        self._isolated = [query.isolates(term.group) for term in terms]
        self._demands = [
            tuple((name, amount) for name, amount in term.resources.items() if name in layout.available)
            for term in terms
        ]
        self._subtrees = self._common_subtrees(query, layout)
        # By depth: the numbers of the subtrees that its group must be in.
        self._subtrees_at: list[list[int]] = [[] for _ in terms]
        for number, subtree in enumerate(self._subtrees):
            for depth in subtree.depths:
                self._subtrees_at[depth].append(number)
        # The state of each subtree after each of its groups that has been assigned.
        self._states: list[list[SubtreeState]] = [[] for _ in self._subtrees]
        self._spread = [depth for depth, term in enumerate(terms) if not term.group.granular]
        required = next((group.required for group in query.groups if not group.granular), ())
        self._required_bits = (1 << len(required)) - 1
        self._occupied: set[int] = set()
        # Terms are sorted by number of options: one with more options than isolated terms before it always
        # finds a free one.
        depths = [depth for depth, isolated in enumerate(self._isolated) if isolated]
        self._scarce = any(len(options[depth]) <= before for before, depth in enumerate(depths))

    def _common_subtrees(self, query: CandidateQuery, layout: TreeLayout) -> list[CommonSubtree]:
        if not query.same_subtree:
            return []
        depths_by_suffix: dict[str, list[int]] = {}
        for depth, term in enumerate(self._terms):
            depths_by_suffix.setdefault(term.group.suffix, []).append(depth)
        depths_of = []
        for suffixes in query.same_subtree:
            self._meter.spend(1 + len(suffixes))
            depths = sorted(chain.from_iterable(depths_by_suffix.get(each, ()) for each in suffixes))
            if len(depths) > 1:
                depths_of.append(depths)
        if not depths_of:
            return []
        for depths in depths_of:
            self._meter.spend(CommonSubtree.cost(depths, layout, self._options))
        order = TreeOrder(layout.ancestor)
        return [CommonSubtree(depths, order, self._options) for depths in depths_of]

    def assignments(self) -> Iterator[list[int]]:
        """Yield every allowed assignment, as the position of each term. The yielded list is reused.

        Raises `TooMuchWork`.
        """
        if not self._promising():
            return
        last = len(self._terms) - 1
        found = 0
        dead_ends: set[tuple[object, ...]] = set()
        # For each term on the path: the options not yet tried, and the assignments found before it.
        path = [(self._untried(0), 0)]
        while path:
            untried, before = path[-1]
            depth = len(path) - 1
            if depth == last:
                for position in untried:
                    if self._completes(position):
                        found += 1
                        self._assigned.append(position)
                        yield self._assigned
                        self._assigned.pop()
            elif self._descend(depth, untried, dead_ends):
                path.append((self._untried(depth + 1), found))
                continue
            path.pop()
            if found == before:
                dead_ends.add(self._state())
            if depth:
                self._take_back(depth - 1)

    def _untried(self, depth: int) -> Iterator[int]:
        """Return the options of a term that no common subtree with earlier terms rules out."""
        begun = [number for number in self._subtrees_at[depth] if self._states[number]]
        if not begun:
            options = self._options[depth]
            self._meter.spend(1 + len(options))
            return iter(options)
        states = {number: self._states[number][-1] for number in begun}
        narrowest = begun[0]
        if len(begun) > 1:
            self._meter.spend(_SUBTREE * len(begun))
            narrowest = min(
                begun, key=lambda number: self._subtrees[number].number_of_next(states[number], depth)
            )
        found = self._subtrees[narrowest].next(states.pop(narrowest), depth, self._meter)
        for number, state in states.items():
            allows = self._subtrees[number].allows
            self._meter.spend(len(found))
            found = [position for position in found if allows(state, depth, position)]
        return iter(found)

    def _completes(self, position: int) -> bool:
        """Return whether a position for the last term completes an assignment. Nothing is taken for it."""
        if not self._can_serve(len(self._terms) - 1, position):
            return False
        if not self._required_bits:
            return True
        self._meter.spend(len(self._spread))
        self._assigned.append(position)
        completes = self._found_bits() == self._required_bits
        self._assigned.pop()
        return completes

    def _descend(self, depth: int, untried: Iterator[int], dead_ends: set[tuple[object, ...]]) -> bool:
        """Assign the next untried position that is allowed and no dead end. Return False if there is none."""
        for position in untried:
            if self._can_serve(depth, position):
                self._take(depth, position)
                if (
                    self._in_subtrees(depth)
                    and not (self._scarce and self._isolated[depth] and self._starved())
                    and not (dead_ends and self._state() in dead_ends)
                ):
                    return True
                self._take_back(depth)
        return False

    def _can_serve(self, depth: int, position: int) -> bool:
        """Return whether a position can serve the term at ``depth`` beside the terms assigned to it."""
        if self._isolated[depth] and position in self._occupied:
            return False
        for name, amount in self._demands[depth]:
            before = self._taken.get((position, name))
            # Each term fits alone, so the sum is at least min_unit and a multiple of step_size; what is
            # available is limited by max_unit.
            if before and not has_room(amount, self._available[name][position] - before):
                return False
        return True

    def _in_subtrees(self, depth: int) -> bool:
        """Return whether groups after ``depth`` can still be in common subtrees with those before."""
        for number in self._subtrees_at[depth]:
            if not self._subtrees[number].is_open(self._states[number][-1], depth, self._meter):
                return False
        return True

    def _take(self, depth: int, position: int) -> None:
        self._assigned.append(position)
        for name, amount in self._demands[depth]:
            self._taken[position, name] = self._taken.get((position, name), 0) + amount
        if self._isolated[depth]:
            self._occupied.add(position)
        self._meter.spend(_SUBTREE * len(self._subtrees_at[depth]))
        for number in self._subtrees_at[depth]:
            states = self._states[number]
            before = states[-1] if states else None
            states.append(self._subtrees[number].after(before, position, self._meter))

    def _take_back(self, depth: int) -> None:
        """Undo the last assignment, which was of the term at ``depth``."""
        position = self._assigned.pop()
        for name, amount in self._demands[depth]:
            left = self._taken[position, name] - amount
            if left:
                self._taken[position, name] = left
            else:
                del self._taken[position, name]
        if self._isolated[depth]:
            self._occupied.remove(position)
        for number in self._subtrees_at[depth]:
            self._states[number].pop()

    def _found_bits(self) -> int:
        """Return the required traits of the unsuffixed group that its assigned providers have, as bits."""
        met = 0
        if self._required_bits:
            for depth in self._spread:
                if depth < len(self._assigned):
                    met |= self._trait_bits[self._assigned[depth]]
        return met

    def _promising(self) -> bool:
        """Return whether counting allows an assignment. A necessary condition, not a sufficient one.

        A position with ``k`` units available serves at most ``k // n`` of the terms that demand ``n`` units
        or more. So these quotients, added up over all options of such terms, must reach their number.
        """
        if self._scarce and self._starved():
            return False
        for name, available in self._available.items():
            asking = [i for i, term in enumerate(self._terms) if name in term.resources]
            asking.sort(key=lambda i: -self._terms[i].resources[name])
            # The largest amounts first: a position that serves them counts for the smaller ones too.
            positions: set[int] = set()
            known: set[int] = set()
            for number, i in enumerate(asking, 1):
                options, n = self._options[i], self._terms[i].resources[name]
                if id(options) not in known:
                    known.add(id(options))
                    self._meter.spend(len(options))
                    positions.update(options)
                is_last = number == len(asking) or self._terms[asking[number]].resources[name] < n
                if number > 1 and is_last and not self._have_room(available, positions, n, number):
                    return False
        return True

    def _have_room(self, available: Sequence[int], positions: Iterable[int], n: int, wanted: int) -> bool:
        """Return whether positions together have room for ``n`` units ``wanted`` times."""
        room = looked = 0
        for position in positions:
            room += available[position] // n
            looked += 1
            if room >= wanted:
                break
        self._meter.spend(looked // 4)
        return room >= wanted

    def _starved(self) -> bool:
        """Return whether the isolated groups not yet assigned cannot have a provider each.

        A maximum bipartite matching of groups and positions, grown by augmenting paths, decides it.
        """
        matched: dict[int, int] = {}
        for group in range(len(self._assigned), len(self._terms)):
            if not self._isolated[group]:
                continue
            # Breadth first from the group: from a matched position on to the group that it is matched with.
            came_from: dict[int, int] = {}
            asking = [group]
            free = None
            for asker in asking:
                self._meter.spend(1 + len(self._options[asker]))
                for position in self._options[asker]:
                    if position in self._occupied or position in came_from:
                        continue
                    came_from[position] = asker
                    if position not in matched:
                        free = position
                        break
                    asking.append(matched[position])
                if free is not None:
                    break
            if free is None:
                return True
            self._meter.spend(len(matched))
            holds = {asker: position for position, asker in matched.items()}
            while free is not None:
                asker = came_from[free]
                matched[free] = asker
                free = holds.get(asker)
        return False

    def _state(self) -> tuple[object, ...]:
        """Return all state that decides which assignments the search can still reach, as a key."""
        self._meter.spend(2 + len(self._taken) + len(self._occupied) + len(self._subtrees) // 4)
        return (
            len(self._assigned),
            frozenset(self._taken.items()),
            frozenset(self._occupied),
            self._found_bits(),
            tuple(states[-1] if states else None for states in self._states),
        )
