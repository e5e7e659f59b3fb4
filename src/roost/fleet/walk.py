"""The walk over one tree's options: which provider serves which term of a query."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from roost.fleet.columns import Rows
from roost.fleet.fleet import Fleet
from roost.model.allocation import Resources
from roost.model.request import CandidateQuery, RequestGroup


@dataclass(frozen=True, slots=True)
class Term:
    """What one provider must serve, and the providers that could.

    ``anchors`` and ``rows`` are parallel and sorted by anchor: option i is provider ``rows[i]`` for the
    tree with root ``anchors[i]``. A sharing provider is an option of many anchors.
    """

    group: RequestGroup
    resources: Resources
    anchors: Rows
    rows: Rows

    def options(self, anchor: int) -> list[int]:
        """The rows that could serve this term in the tree of ``anchor``."""
        # Sought as the column's type: for any other searchsorted would first convert the whole column.
        start, end = self.anchors.searchsorted(np.array((anchor, anchor + 1), dtype=np.intp))
        found: list[int] = self.rows[start:end].tolist()
        return found


class Walk:
    """A depth-first walk over one tree's options, with what is taken so far.

    Why not recursive generators: a query may have more terms than Python has stack.

    Why look ahead: a request for one device more than there is fails only at the last term, and a plain
    walk would first try every way of choosing the others (33 groups on 32 devices: 32! ways). So the walk
    checks `_promising` before it begins, sees after each isolated choice that the later groups can still
    have a provider each, and does not explore the same dead end twice.
    """

    def __init__(
        self, fleet: Fleet, query: CandidateQuery, terms: list[Term], options: list[list[int]]
    ) -> None:
        self._fleet = fleet
        self._unsuffixed = next((group for group in query.groups if not group.granular), None)
        self._terms = terms
        self._options = options
        self._chosen: list[int] = []
        self._taken: dict[tuple[int, str], int] = {}
        self._ancestors: dict[int, frozenset[int]] = {}
        self._isolated = [query.isolate and term.group.granular for term in terms]
        self._wants = [tuple(term.resources.items()) for term in terms]
        self._subtrees = [_Subtree(terms, options, suffixes) for suffixes in query.same_subtree]
        self._spread = [depth for depth, term in enumerate(terms) if not term.group.granular]
        self._met: dict[tuple[int, ...], bool] = {}
        self._held: set[int] = set()
        # Options ascend in number, so with more of them than groups before it no group can be left without.
        places = [depth for depth, isolated in enumerate(self._isolated) if isolated]
        self._scarce = any(len(options[depth]) <= before for before, depth in enumerate(places))

    def choices(self) -> Iterator[list[int]]:
        """Every allowed choice of one row for each term; yields the (reused) list of rows chosen."""
        if not self._promising():
            return
        last = len(self._terms) - 1
        found = 0
        dead: set[tuple[object, ...]] = set()
        # Of each term under way: the options not yet tried, and how many choices had been found before it.
        under_way = [(iter(self._options[0]), 0)]
        while under_way:
            untried, before = under_way[-1]
            depth = len(under_way) - 1
            for row in untried:
                if not self._choose(depth, row):
                    continue
                if depth < last:
                    if not dead or self._situation() not in dead:
                        under_way.append((iter(self._options[depth + 1]), found))
                        break
                elif self._traits_met():
                    found += 1
                    yield self._chosen
                self._take_back(depth)
            else:
                under_way.pop()
                if found == before:
                    dead.add(self._situation())
                if self._chosen:
                    self._take_back(depth - 1)

    def _choose(self, depth: int, row: int) -> bool:
        """Choose ``row`` for the term at ``depth``, the next one, if nothing forbids it."""
        isolated = self._isolated[depth]
        if isolated and row in self._held:
            return False
        taken = self._taken
        for name, amount in self._wants[depth]:
            before = taken.get((row, name))
            if before and not self._fits_on_top(row, name, before + amount):
                return False
        self._chosen.append(row)
        for name, amount in self._wants[depth]:
            taken[row, name] = taken.get((row, name), 0) + amount
        if isolated:
            self._held.add(row)
        for subtree in self._subtrees:
            if depth in subtree.depths and not subtree.possible(self._chosen, self._lineage):
                self._take_back(depth)
                return False
        if isolated and self._scarce and self._starved():
            self._take_back(depth)
            return False
        return True

    def _take_back(self, depth: int) -> None:
        """Undo the last choice, which was of the term at ``depth``."""
        row = self._chosen.pop()
        for name, amount in self._wants[depth]:
            self._taken[row, name] -= amount
        if self._isolated[depth]:
            self._held.remove(row)

    def _fits_on_top(self, row: int, name: str, together: int) -> bool:
        """Whether a term fits beside what earlier terms take from the same provider."""
        stock = self._fleet.stock(name)
        return stock.fits_at(stock.slot(row), together)

    def _traits_met(self) -> bool:
        """Whether the unsuffixed group's providers together have what it requires."""
        if self._unsuffixed is None or not self._unsuffixed.required:
            return True
        serving = tuple([self._chosen[depth] for depth in self._spread])
        met = self._met.get(serving)
        if met is None:
            together = self._traits_together()
            met = not any(together.isdisjoint(any_of) for any_of in self._unsuffixed.required)
            self._met[serving] = met
        return met

    def _traits_together(self) -> frozenset[str]:
        return frozenset(
            trait
            for row, term in zip(self._chosen, self._terms, strict=False)
            if not term.group.granular
            for trait in self._fleet.traits_of(row)
        )

    def _lineage(self, row: int) -> frozenset[int]:
        """A row and all rows above it."""
        if row not in self._ancestors:
            rows = [row]
            while (above := self._fleet.parent.item(rows[-1])) >= 0:
                rows.append(above)
            self._ancestors[row] = frozenset(rows)
        return self._ancestors[row]

    def _promising(self) -> bool:
        """Whether there is room for all terms, as far as counting tells.

        A provider with room for ``most`` units serves at most ``most // n`` of the terms that want ``n``
        or more; all such terms must find a place somewhere among their options.
        """
        if self._scarce and self._starved():
            return False
        wanted = {(name, n) for term in self._terms for name, n in term.resources.items()}
        for name, n in wanted:
            asking = [i for i, term in enumerate(self._terms) if term.resources.get(name, 0) >= n]
            if len(asking) > 1:
                stock = self._fleet.stock(name)
                slots = {stock.slot(row) for i in asking for row in self._options[i]}
                if sum(stock.most_at(slot) // n for slot in slots) < len(asking):
                    return False
        return True

    def _starved(self) -> bool:
        """Whether the isolated groups still to be served cannot have a provider each: a bipartite matching
        of groups and rows, grown by augmenting paths."""
        promised: dict[int, int] = {}
        for group in range(len(self._chosen), len(self._terms)):
            if not self._isolated[group]:
                continue
            # Breadth first from the group: over a promised row on to the group that holds the promise.
            came_from: dict[int, int] = {}
            asking = [group]
            free = None
            for asker in asking:
                for row in self._options[asker]:
                    if row in self._held or row in came_from:
                        continue
                    came_from[row] = asker
                    if row not in promised:
                        free = row
                        break
                    asking.append(promised[row])
                if free is not None:
                    break
            if free is None:
                return True
            holds = {asker: row for row, asker in promised.items()}
            while free is not None:
                asker = came_from[free]
                promised[free] = asker
                free = holds.get(asker)
        return False

    def _situation(self) -> tuple[object, ...]:
        """All that decides how the walk can go on from here."""
        return (
            len(self._chosen),
            frozenset(item for item in self._taken.items() if item[1]),
            frozenset(self._held),
            self._traits_together() if self._unsuffixed is not None and self._unsuffixed.required else None,
            tuple(frozenset(subtree.serving(self._chosen)) for subtree in self._subtrees),
        )


class _Subtree:
    """A same_subtree: ``depths`` are the places of its groups among the terms."""

    def __init__(
        self, terms: Sequence[Term], options: Sequence[Iterable[int]], suffixes: frozenset[str]
    ) -> None:
        self.depths = [depth for depth, term in enumerate(terms) if term.group.suffix in suffixes]
        self._known: dict[tuple[int, ...], bool] = {}
        # By how many terms are chosen: the rows that later groups of it could have.
        self._later = [
            frozenset(row for depth in self.depths if depth >= chosen for row in options[depth])
            for chosen in range(len(terms) + 1)
        ]

    def serving(self, chosen: Sequence[int]) -> list[int]:
        """The rows chosen so far for its groups."""
        return [chosen[depth] for depth in self.depths if depth < len(chosen)]

    def possible(self, chosen: Sequence[int], lineage: Callable[[int], frozenset[int]]) -> bool:
        """Whether one of its rows, chosen or to come, can still be at or above all that are chosen."""
        served = self.serving(chosen)
        key = (len(chosen), *served)
        known = self._known.get(key)
        if known is None:
            above = lineage(served[0])
            for row in served[1:]:
                above &= lineage(row)
            known = not (above.isdisjoint(served) and above.isdisjoint(self._later[len(chosen)]))
            self._known[key] = known
        return known
