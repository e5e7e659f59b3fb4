"""The shapes that are kept, and which decisions may use them."""

import math
from collections.abc import Hashable, Sequence

import msgspec

from roost.fleet import Fleet
from roost.scheduler.asking import ask_key
from roost.scheduler.candidate_order import CandidateOrder
from roost.scheduler.declarations import depends_on_claims, has_domain, is_keyed, looks_at
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.kept.board import Board
from roost.scheduler.kept.field import KeptField
from roost.scheduler.kept.serving import servable
from roost.scheduler.kept.shape import Shape
from roost.scheduler.nodes import NodeTable
from roost.scheduler.plugins import Filter, Looks, Weigher
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
        every: list[Filter | Weigher] = [*filters, *weighers]
        self._unkept = [plugin for plugin in every if not _is_kept(plugin)]
        self._keyed = [plugin for plugin in filters if _is_kept(plugin) and is_keyed(plugin)]
        self._board: Board | None = None
        self._shapes: dict[tuple[Hashable, ...], Shape] = {}

    def field(self, fleet: Fleet, question: Question, table: NodeTable) -> KeptField | None:
        """The field for a question on the fleet as it is now; None if nothing can be kept for it."""
        spec = question.spec
        if spec.ignore_hosts or any(ask_key(plugin, question) is not None for plugin in self._unkept):
            return None
        if not (len(table) and servable(fleet, question.query)):
            return None
        board = self._current_board(fleet, question, table)
        if board is None:
            return None
        key = (_encode(question.query), *(ask_key(plugin, question) for plugin in self._keyed))
        shape = self._shapes.pop(key, None)
        try:
            if shape is None or not shape.catch_up(question):
                shape = Shape(board, question, self._filters)
        except SchedulerFault:
            return None
        self._shapes[key] = shape
        if len(self._shapes) > min(MOST_SHAPES, 1 + _MOST_PLACES // len(board.layout)):
            del self._shapes[next(iter(self._shapes))]
        order = CandidateOrder(self._filters, self._weighers, question)
        return KeptField(board, shape, question, order)

    def _current_board(self, fleet: Fleet, question: Question, table: NodeTable) -> Board | None:
        """The board, brought up to date or made anew; None if not every host has a weight, or a plugin
        fails on some host.

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
        except (CannotWeigh, SchedulerFault):
            self._shapes.clear()
            return None
        self._board = board
        return board


def _is_kept(plugin: Filter | Weigher) -> bool:
    """Whether answers of a plugin are kept: of some others for each decision anew."""
    looks = looks_at(plugin)
    if looks is None or Looks.MEMBERS in looks or depends_on_claims(plugin) or has_domain(plugin):
        return False
    return not (is_keyed(plugin) and hasattr(plugin, "raw"))


def _sound(question: Question) -> bool:
    """Whether weights are numbers."""
    return all(map(math.isfinite, question.options.multipliers.values()))
