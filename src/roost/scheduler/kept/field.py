"""The field that goes on from what is known of a shape."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.scheduler.candidate_order import CandidateOrder
from roost.scheduler.kept.board import Board
from roost.scheduler.kept.shape import Shape
from roost.scheduler.offers import OneHost
from roost.scheduler.question import Question


class KeptField:
    """A `Field` on a shape that has caught up. A host's number is its place."""

    def __init__(self, board: Board, shape: Shape, question: Question, order: CandidateOrder) -> None:
        self._board = board
        self._order = order
        self._shape = shape
        self._ranks = shape.ranks
        self._question = question
        self._claimed: list[int] = []
        self._full: list[int] = []
        self._full_now: list[int] = []
        self._begun = False

    def ready(self) -> list[Step]:
        if not self._begun:
            self._begun = True
            return self._shape.steps()
        self._ranks.put_back()
        current = self._board.sync(self._question)
        assert current, "a claim has changed which hosts there are"
        self._shape.reweigh(self._claimed[-1:], self._full_now)
        self._full += self._full_now
        self._full_now = []
        return []

    def best(self, among: int) -> Sequence[int]:
        ranks = self._ranks
        best = ranks.best()
        if best is None:
            return ()
        if among <= 1:
            return (best,)
        found: list[int] = []
        while best is not None and len(found) < among:
            found.append(best)
            ranks.take(best)
            best = ranks.best()
        ranks.put_back()
        for place in self._full_now:
            ranks.take(place)
        return found

    def index(self, host: int) -> int:
        return self._board.layout.index_at.item(host)

    def weight(self, host: int) -> float:
        return self._ranks.weight(host)

    def candidates(self, host: int) -> Iterator[Candidate]:
        candidates = self._candidates(host)
        if not self._order.matters:
            return candidates
        board = self._board
        one = OneHost(board.table, board.totals, host, board.totals.level)
        return self._order.of(one, candidates)

    def _candidates(self, host: int) -> Iterator[Candidate]:
        fleet, serving = self._board.fleet, self._shape.serving
        row = self._board.row_at.item(host)
        if host not in self._claimed or serving.fits(fleet, row, {}):
            yield serving.candidate(fleet, row)

    def drop(self, host: int) -> None:
        self._full_now.append(host)
        self._ranks.take(host)

    def claimed(self, host: int, candidate: Candidate) -> None:
        self._claimed.append(host)

    def ranking(self, cell: int, claimed: Collection[int], expected: int) -> Iterator[int]:
        ranks = self._ranks
        for host in claimed:
            if self.weighed(host):
                ranks.take(host)
        while (best := ranks.best_of(cell)) is not None:
            yield best
            ranks.take(best)

    def weighed(self, host: int) -> bool:
        return self._shape.stage.item(host) == self._shape.full

    def open_to(self, leaving: int, promised: Counter[int]) -> Callable[[int], bool]:
        full = {*self._full, *self._full_now}
        return lambda host: host not in full
