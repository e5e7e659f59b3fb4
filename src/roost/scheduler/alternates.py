"""Alternates: for each instance that was placed, other hosts that could take it if its own fails."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from roost.fleet.columns import Bools
from roost.model.spec import Selection
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import Offers
from roost.scheduler.outcome import Placed, selection_of
from roost.scheduler.question import Progress, Question
from roost.scheduler.weighing import Weighing


class Alternates:
    """Finds the alternates of the instances of one run, in the same cell each, best first.

    They are ranked by the weights that the last instance was placed by. ``may`` says which hosts may be
    used with the members that a `Progress` has.

    Hosts that this run claimed come after the others, and each instance goes on in the ranking where the
    one before it stopped: so that a failure of many does not send all of them to the same host.
    """

    def __init__(
        self,
        question: Question,
        table: HostTable,
        offers: Offers,
        weighing: Weighing,
        progress: Progress,
        may: Callable[[Progress], Bools],
    ) -> None:
        self._question = question
        self._table = table
        self._offers = offers
        self._weighing = weighing
        self._progress = progress
        self._may = may
        self._found: dict[int, Selection | None] = {}

    def of(self, placed: Sequence[Placed]) -> list[tuple[Selection, ...]]:
        """The alternates of each instance, ``num_alternates`` at most."""
        wanted = self._question.num_alternates
        if not wanted:
            return [()] * len(placed)
        cells = self._table.cell[self._offers.index]
        claimed = [one.position for one in placed]
        pools: dict[int, _Pool] = {}
        promised: Counter[int] = Counter()
        grouped = self._question.spec.group is not None
        may = self._may(self._progress)
        result = []
        for one in placed:
            cell = cells.item(one.position)
            if cell not in pools:
                pools[cell] = _Pool(self._weighing, cells == cell, claimed, wanted * len(placed))
            if grouped:
                may = self._may(self._without(one, promised))
            others: list[Selection] = []
            for position in pools[cell].turn():
                if position != one.position and may[position]:
                    selection = self._selection(position)
                    if selection is not None:
                        others.append(selection)
                        promised[self._offers.index.item(position)] += 1
                        if len(others) == wanted:
                            break
            result.append(tuple(others))
        return result

    def _without(self, one: Placed, promised: Counter[int]) -> Progress:
        """The group as it would be if ``one`` left its host and the others before it went to alternates."""
        members = self._progress.members + promised
        members[self._offers.index.item(one.position)] -= 1
        return Progress(+members)

    def _selection(self, position: int) -> Selection | None:
        """The host with the first of its candidates that fits, None if none does."""
        if position not in self._found:
            candidate = next(self._offers.candidates(position), None)
            self._found[position] = (
                None
                if candidate is None
                else selection_of(
                    self._table,
                    self._offers.index.item(position),
                    candidate,
                    self._weighing.weight(position),
                )
            )
        return self._found[position]


class _Pool:
    """The hosts of one cell that were weighed, best first, sorted only as far as they are asked for."""

    def __init__(self, weighing: Weighing, in_cell: Bools, claimed: Sequence[int], expected: int) -> None:
        self._weighing = weighing
        used = {position for position in claimed if in_cell[position] and weighing.allowed[position]}
        self._claimed = sorted(used, key=lambda position: (-weighing.weight(position), position))
        self._fresh = in_cell
        self._fresh[claimed] = False
        self._ranked: list[int] = []
        self._sort = expected + 8
        self._next = 0

    def turn(self) -> Iterator[int]:
        """Hosts from where the last turn stopped, once round; at last those that the run claimed."""
        start = self._next
        while self._next < len(self._ranked) or self._rank_more():
            self._next += 1
            yield self._ranked[self._next - 1]
        self._next = 0
        while self._next < start:
            self._next += 1
            yield self._ranked[self._next - 1]
        yield from self._claimed

    def _rank_more(self) -> bool:
        before = len(self._ranked)
        self._ranked = self._weighing.best(self._sort, self._fresh).tolist()
        self._sort *= 8
        return len(self._ranked) > before
