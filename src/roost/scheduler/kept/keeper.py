"""The shapes that are kept, and which decisions may use them."""

import math
from collections.abc import Sequence

import msgspec

from roost.fleet import Fleet
from roost.scheduler.errors import CannotWeigh
from roost.scheduler.hosts import HostTable
from roost.scheduler.kept.board import Board
from roost.scheduler.kept.field import KeptField
from roost.scheduler.kept.serving import servable
from roost.scheduler.kept.shape import Shape
from roost.scheduler.plugins import OF_A_HOST, Filter, Scope, Weigher, scope_of
from roost.scheduler.question import Question

MOST_SHAPES = 256
_MOST_PLACES = 32_000_000
"""Of all shapes together; each place of a shape takes up to 9 bytes, and mostly little more than one."""

_encode = msgspec.msgpack.Encoder().encode


class Keeper:
    """What a scheduler with these plugins keeps from one decision to the next."""

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = filters
        self._weighers = weighers
        self._may_keep = all(map(_is_kept, filters)) and all(
            scope_of(weigher) in OF_A_HOST for weigher in weighers
        )
        self._board: Board | None = None
        self._shapes: dict[bytes, Shape] = {}

    def field(self, fleet: Fleet, question: Question, table: HostTable) -> KeptField | None:
        """The field for a question on the fleet as it is now; None if nothing can be kept for it."""
        spec = question.spec
        if not self._may_keep or spec.group is not None or spec.ignore_hosts:
            return None
        if not (len(table) and servable(fleet, question.query)):
            return None
        board = self._current_board(fleet, question, table)
        if board is None:
            return None
        key = _key(question)
        shape = self._shapes.pop(key, None)
        if shape is None or not shape.catch_up(question):
            shape = Shape(board, question, self._filters)
        self._shapes[key] = shape
        if len(self._shapes) > min(MOST_SHAPES, 1 + _MOST_PLACES // len(board.layout)):
            del self._shapes[next(iter(self._shapes))]
        return KeptField(board, shape, question)

    def _current_board(self, fleet: Fleet, question: Question, table: HostTable) -> Board | None:
        """The board, brought up to date or made anew; None if not every host has a weight.

        The board asks weighers for all hosts of the table, a run only for those that it may use: whether the
        request must fail is the run's to find out.
        """
        board, self._board = self._board, None
        try:
            if (
                board is None
                or board.fleet is not fleet
                or board.table is not table
                or board.options is not question.options
                or not board.sync(question)
            ):
                self._shapes.clear()
                if not _sound(question):
                    return None
                board = Board(fleet, table, self._filters, self._weighers, question)
        except CannotWeigh:
            self._shapes.clear()
            return None
        self._board = board
        return board


def _is_kept(plugin: Filter) -> bool:
    scope = scope_of(plugin)
    return scope is Scope.GROUP or (scope is not None and not plugin.depends_on_claims)


def _sound(question: Question) -> bool:
    """Whether weights are numbers."""
    return all(map(math.isfinite, question.options.multipliers.values()))


def _key(question: Question) -> bytes:
    """All of a question that its shape hangs on; see `Scope.REQUEST`."""
    spec = question.spec
    parts = (
        question.query,
        spec.flavor,
        spec.availability_zone,
        spec.image,
        spec.volume_backed,
        spec.scheduler_hints,
    )
    return _encode(parts)
