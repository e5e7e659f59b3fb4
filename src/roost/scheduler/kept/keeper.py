"""The shapes that are kept, and which decisions may use them."""

import math
from collections.abc import Hashable, Sequence

import msgspec

from roost.fleet import Fleet
from roost.scheduler.asking import ask_key
from roost.scheduler.candidate_order import CandidateOrder
from roost.scheduler.declarations import depends_on_claims, in_order, is_keyed
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.group_members import progress_at_start
from roost.scheduler.kept.board import Board
from roost.scheduler.kept.excluding import Excluding, excluding
from roost.scheduler.kept.field import KeptField
from roost.scheduler.kept.narrowed import Narrowed
from roost.scheduler.kept.own_columns import OwnColumns
from roost.scheduler.kept.roles import Judged, Role, is_kept
from roost.scheduler.kept.serving import by_roots_alone
from roost.scheduler.kept.shape import Shape
from roost.scheduler.kept.verdicts import Verdicts
from roost.scheduler.nodes import NodeTable
from roost.scheduler.places import is_forced
from roost.scheduler.plugins import Filter, Weigher
from roost.scheduler.question import Progress, Question

MOST_SHAPES = 256
MOST_KEYS = 32
"""Different keys of one filter that shapes hang on; a filter that has had more is asked for by `Verdicts`."""
_MOST_PLACES = 32_000_000
"""Of all shapes together; each place of a shape takes up to 9 bytes, and mostly little more than one."""

_encode = msgspec.msgpack.Encoder().encode


class Keeper:
    """What a scheduler with these plugins keeps from one decision to the next."""

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = filters
        self._weighers = weighers
        self._ordered = [
            (plugin, is_kept(plugin), is_keyed(plugin), depends_on_claims(plugin))
            for plugin in in_order(filters)
        ]
        self._own_weighers = [(rank, each) for rank, each in enumerate(weighers) if not is_kept(each)]
        self._ordering = (
            [each for each in filters if hasattr(each, "narrow")],
            [each for each in weighers if hasattr(each, "rank")],
        )
        # The keys of each filter so far, until they are too many.
        self._keys: dict[str, set[Hashable]] = {}
        self._varied: set[str] = set()
        self._board: Board | None = None
        self._verdicts: Verdicts | None = None
        self._shapes: dict[tuple[Hashable, ...], Shape] = {}

    def field(self, fleet: Fleet, question: Question, table: NodeTable) -> KeptField | None:
        """The field for a question on the fleet as it is now; None if nothing can be kept for it.

        Raises: `SchedulerFault` if a plugin cannot tell its key.
        """
        if question.fallback is not None or is_forced(question.spec) or not len(table):
            return None
        if question.places:
            return None
        board = self._current_board(fleet, question, table)
        if board is None:
            return None
        judged = self._judge(question)
        key = (
            _encode(question.query),
            by_roots_alone(fleet, question.query),
            *((each.plugin.name, each.key) for each in judged if each.key and each.role is Role.KEPT),
        )
        shape = self._shapes.pop(key, None)
        try:
            if shape is None or not shape.catch_up(question):
                shape = Shape(board, question, judged)
        except SchedulerFault:
            return None
        self._shapes[key] = shape
        if len(self._shapes) > min(MOST_SHAPES, 1 + _MOST_PLACES // len(board.layout)):
            del self._shapes[next(iter(self._shapes))]
        order = CandidateOrder(*self._ordering, question)
        progress = progress_at_start(question, table, fleet)
        pool = self._narrowed(board, shape, question, judged, progress)
        return None if pool is None else KeptField(board, pool, question, judged, order, progress)

    def _narrowed(
        self,
        board: Board,
        shape: Shape,
        question: Question,
        judged: Sequence[Judged],
        progress: Progress,
    ) -> Shape | Narrowed | Excluding | None:
        """The shape, or if something is to be asked for this request alone the shape narrowed for it; None if
        a filter fails on some host: whether on one that is in play is the run's to find out."""
        own = OwnColumns(board, self._own_weighers, question)
        asking = any(each.role in (Role.ASKED, Role.VARIED) for each in judged)
        if not (asking or own or question.spec.ignore_hosts):
            return shape
        verdicts = self._verdicts = self._verdicts or Verdicts(board)

        def narrow(first: Progress) -> Narrowed:
            return Narrowed(board, shape, verdicts, question, judged, own, progress, first)

        try:
            few = None if own else excluding(board, shape, question, judged, progress, narrow)
            return narrow(progress) if few is None else few
        except SchedulerFault:
            return None

    def _judge(self, question: Question) -> list[Judged]:
        """The filters in the order in which they are asked, each with its part in this request."""
        judged = []
        for plugin, kept, keyed, again in self._ordered:
            role, key = Role.KEPT if kept else Role.ASKED, None
            if keyed:
                key = ask_key(plugin, question)
                if key is None:
                    role = Role.SILENT
                elif kept and self._is_varied(plugin.name, key):
                    role = Role.VARIED
            judged.append(Judged(plugin, role, key, again))
        return judged

    def _is_varied(self, name: str, key: Hashable) -> bool:
        """Whether a filter has had more keys than shapes should hang on."""
        if name in self._varied:
            return True
        keys = self._keys.setdefault(name, set())
        keys.add(key)
        if len(keys) > MOST_KEYS:
            self._varied.add(name)
            del self._keys[name]
        return name in self._varied

    def _current_board(self, fleet: Fleet, question: Question, table: NodeTable) -> Board | None:
        """The board, brought up to date or made anew; None if not every host has a weight, or a plugin
        fails on some host.

        The board asks weighers for all hosts of the table, a run only for those that it may use: whether the
        request must fail is the run's to find out.
        """
        board, self._board = self._board, None
        verdicts, self._verdicts = self._verdicts, None
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
        if self._shapes:
            self._verdicts = verdicts
        self._board = board
        return board


def _sound(question: Question) -> bool:
    """Whether weights are numbers."""
    return all(map(math.isfinite, question.options.multipliers.values()))
