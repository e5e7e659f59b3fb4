"""The walk over one tree's options: which provider serves which term of a query."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter

from roost.fleet.fits import has_room
from roost.fleet.query_terms import Term
from roost.fleet.tree_layout import Layout
from roost.model.request import CandidateQuery

_MOST_KEPT = 2**13
"""Places in all choices that are kept for the next trees with the same layout."""

Places = tuple[int, ...]
"""A choice: for each term a place."""


class Ways:
    """All choices for the trees of one layout: found as far as somebody reads, kept for the next trees.

    A layout may have billions: from some number on they are not kept, and each tree is walked by itself.
    """

    def __init__(self, query: CandidateQuery, terms: Sequence[Term], layout: Layout) -> None:
        self._query = query
        self._terms = terms
        self._layout = layout
        self._most = max(1, _MOST_KEPT // len(terms))
        self._kept: list[Places] = []
        self._walked: Iterator[Places] | None = self._walk()
        self._ended = False

    def of(self, rows: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The rows chosen for each term, for a tree that has ``rows`` at the layout's places."""
        if self._ended:
            chosen = map(rows.__getitem__, chain.from_iterable(self._kept))
            return zip(*[chosen] * len(self._terms), strict=True)
        return self._as_found(rows)

    def _as_found(self, rows: Sequence[int]) -> Iterator[tuple[int, ...]]:
        kept, number, row_at = self._kept, 0, rows.__getitem__
        # Several trees may be read in turn: each goes on from where it is, whoever found what is next.
        while True:
            for places in islice(kept, number, None):
                number += 1
                yield tuple(map(row_at, places))
            if number >= self._most:
                break
            for places in self._walked or ():
                kept.append(places)
                number += 1
                yield tuple(map(row_at, places))
                if number < len(kept) or number >= self._most:
                    break
            else:
                self._ended = True
                return
        # The first to come here goes on with the walk that is under way, all others begin their own.
        own, self._walked = self._walked, None
        for places in own or islice(self._walk(), number, None):
            yield tuple(map(row_at, places))

    def _walk(self) -> Iterator[Places]:
        options = self._layout.options
        if not all(options):
            return iter(())
        # Fewest options first: a branch that cannot end well is left early.
        order = sorted(range(len(options)), key=lambda i: len(options[i]))
        walk = Walk(self._query, [self._terms[i] for i in order], self._layout, [options[i] for i in order])
        if order == sorted(order):
            return map(tuple, walk.choices())
        return map(itemgetter(*sorted(order, key=order.__getitem__)), walk.choices())


class Walk:
    """A depth-first walk over the options of a layout, with what is taken so far.

    Why not recursive generators: a query may have more terms than Python has stack.

    Why look ahead: a request for one device more than there is fails only at the last term, and a plain
    walk would first try every way of choosing the others (33 groups on 32 devices: 32! ways). So the walk
    checks `_promising` before it begins, sees after each isolated choice that the later groups can still
    have a provider each, and does not explore the same dead end twice.
    """

    def __init__(
        self, query: CandidateQuery, terms: Sequence[Term], layout: Layout, options: Sequence[list[int]]
    ) -> None:
        """``terms`` in the order to walk them, with the ``options`` of each."""
        self._terms = terms
        self._options = options
        self._room = layout.room
        self._meets = layout.meets
        self._chosen: list[int] = []
        # Only of classes that several terms can take from one place: of others, options have room.
        self._taken: dict[tuple[int, str], int] = {}
        self._isolated = [query.isolate and term.group.granular for term in terms]
        self._wants = [
            tuple((name, amount) for name, amount in term.resources.items() if name in layout.room)
            for term in terms
        ]
        self._subtrees = [_Subtree(terms, layout, options, suffixes) for suffixes in query.same_subtree]
        self._spread = [depth for depth, term in enumerate(terms) if not term.group.granular]
        required = next((group.required for group in query.groups if not group.granular), ())
        self._all_met = (1 << len(required)) - 1
        self._held: set[int] = set()
        # Options ascend in number, so with more of them than groups before it no group can be left without.
        depths = [depth for depth, isolated in enumerate(self._isolated) if isolated]
        self._scarce = any(len(options[depth]) <= before for before, depth in enumerate(depths))

    def choices(self) -> Iterator[list[int]]:
        """Every allowed choice of one place for each term; yields the (reused) list of places chosen."""
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
            if depth == last:
                for place in untried:
                    if self._completes(place):
                        found += 1
                        self._chosen.append(place)
                        yield self._chosen
                        self._chosen.pop()
            elif self._chooses(depth, untried, dead):
                under_way.append((iter(self._options[depth + 1]), found))
                continue
            under_way.pop()
            if found == before:
                dead.add(self._situation())
            if depth:
                self._take_back(depth - 1)

    def _completes(self, place: int) -> bool:
        """Whether ``place`` for the last term makes a choice of all. No term follows, so nothing is taken."""
        depth = len(self._terms) - 1
        if not self._is_open(depth, place):
            return False
        if not self._subtrees and not self._all_met:
            return True
        self._chosen.append(place)
        completes = self._in_subtrees(depth) and self._traits_met() == self._all_met
        self._chosen.pop()
        return completes

    def _chooses(self, depth: int, untried: Iterator[int], dead: set[tuple[object, ...]]) -> bool:
        """Choose the next place that is allowed and does not lead where nothing was found before, if any."""
        for place in untried:
            if self._is_open(depth, place):
                self._take(depth, place)
                if (
                    self._in_subtrees(depth)
                    and not (self._scarce and self._isolated[depth] and self._starved())
                    and not (dead and self._situation() in dead)
                ):
                    return True
                self._take_back(depth)
        return False

    def _is_open(self, depth: int, place: int) -> bool:
        """Whether a place can serve the term at ``depth`` beside the terms that it serves already."""
        if self._isolated[depth] and place in self._held:
            return False
        for name, amount in self._wants[depth]:
            before = self._taken.get((place, name))
            # What each term asks for fits by itself, so units and steps are right for the sum as well.
            if before and not has_room(amount, self._room[name][place] - before):
                return False
        return True

    def _in_subtrees(self, depth: int) -> bool:
        """Whether what is chosen, last for ``depth``, can still be in each subtree."""
        for subtree in self._subtrees:
            if depth in subtree.depths and not subtree.possible(self._chosen):
                return False
        return True

    def _take(self, depth: int, place: int) -> None:
        self._chosen.append(place)
        for name, amount in self._wants[depth]:
            self._taken[place, name] = self._taken.get((place, name), 0) + amount
        if self._isolated[depth]:
            self._held.add(place)

    def _take_back(self, depth: int) -> None:
        """Undo the last choice, which was of the term at ``depth``."""
        place = self._chosen.pop()
        for name, amount in self._wants[depth]:
            self._taken[place, name] -= amount
        if self._isolated[depth]:
            self._held.remove(place)

    def _traits_met(self) -> int:
        """The any-ofs of the unsuffixed group that the providers chosen for it so far meet, as bits."""
        met = 0
        if self._all_met:
            for depth in self._spread:
                if depth < len(self._chosen):
                    met |= self._meets[self._chosen[depth]]
        return met

    def _promising(self) -> bool:
        """Whether there is room for all terms, as far as counting tells.

        A provider with room for ``most`` units serves at most ``most // n`` of the terms that want ``n``
        or more; all such terms must find a place somewhere among their options.
        """
        if self._scarce and self._starved():
            return False
        for name, room in self._room.items():
            for n in {term.resources[name] for term in self._terms if name in term.resources}:
                asking = [i for i, term in enumerate(self._terms) if term.resources.get(name, 0) >= n]
                places = {place for i in asking for place in self._options[i]}
                if len(asking) > 1 and sum(room[place] // n for place in places) < len(asking):
                    return False
        return True

    def _starved(self) -> bool:
        """Whether the isolated groups still to be served cannot have a provider each: a bipartite matching
        of groups and places, grown by augmenting paths."""
        promised: dict[int, int] = {}
        for group in range(len(self._chosen), len(self._terms)):
            if not self._isolated[group]:
                continue
            # Breadth first from the group: over a promised place on to the group that holds the promise.
            came_from: dict[int, int] = {}
            asking = [group]
            free = None
            for asker in asking:
                for place in self._options[asker]:
                    if place in self._held or place in came_from:
                        continue
                    came_from[place] = asker
                    if place not in promised:
                        free = place
                        break
                    asking.append(promised[place])
                if free is not None:
                    break
            if free is None:
                return True
            holds = {asker: place for place, asker in promised.items()}
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
            self._traits_met(),
            tuple(frozenset(subtree.serving(self._chosen)) for subtree in self._subtrees),
        )


class _Subtree:
    """A same_subtree: ``depths`` are the depths of its groups in the walk."""

    def __init__(
        self,
        terms: Sequence[Term],
        layout: Layout,
        options: Sequence[Iterable[int]],
        suffixes: frozenset[str],
    ) -> None:
        self.depths = [depth for depth, term in enumerate(terms) if term.group.suffix in suffixes]
        self._above = layout.above
        self._lineages: dict[int, frozenset[int]] = {}
        self._known: dict[tuple[int, ...], bool] = {}
        # By how many terms are chosen: the places that later groups of it could have.
        self._later = [
            frozenset(place for depth in self.depths if depth >= chosen for place in options[depth])
            for chosen in range(len(terms) + 1)
        ]

    def serving(self, chosen: Sequence[int]) -> list[int]:
        """The places chosen so far for its groups."""
        return [chosen[depth] for depth in self.depths if depth < len(chosen)]

    def possible(self, chosen: Sequence[int]) -> bool:
        """Whether one of its places, chosen or to come, can still be at or above all that are chosen."""
        served = self.serving(chosen)
        key = (len(chosen), *served)
        known = self._known.get(key)
        if known is None:
            above = self._lineage(served[0])
            for place in served[1:]:
                above &= self._lineage(place)
            known = not (above.isdisjoint(served) and above.isdisjoint(self._later[len(chosen)]))
            self._known[key] = known
        return known

    def _lineage(self, place: int) -> frozenset[int]:
        """A place and all places above it."""
        if place not in self._lineages:
            places = [place]
            while (above := self._above[places[-1]]) >= 0:
                places.append(above)
            self._lineages[place] = frozenset(places)
        return self._lineages[place]
