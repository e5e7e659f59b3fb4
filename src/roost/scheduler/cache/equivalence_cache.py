"""The shapes that are kept, and which decisions may use them."""

import math
from collections.abc import Hashable, Sequence

import msgspec

from roost.fleet import Fleet
from roost.model.request import CandidateQuery
from roost.scheduler.cache.cached_pool import CachedPool
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.excluded_hosts import ClassWithoutHosts, excluding
from roost.scheduler.cache.flat_feasibility import by_roots_alone
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.cache.own_columns import OwnColumns
from roost.scheduler.cache.plugin_parts import Parts, PluginParts
from roost.scheduler.cache.verdicts import Verdicts
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.places import is_forced
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST_SHAPES = 256
_MOST_PLACES = 32_000_000
"""Of all shapes together; each place of a shape takes up to 9 bytes, and mostly little more than one."""

_MOST_ENCODED = 256
_encode = msgspec.msgpack.Encoder().encode


class EquivalenceCache:
    """What a scheduler with these plugins keeps from one decision to the next."""

    def __init__(self, filters: Sequence[Filter], weighers: Sequence[Weigher]) -> None:
        self._filters = filters
        self._weighers = weighers
        self._judging = PluginParts(filters, weighers)
        self._ordering = (
            [each for each in filters if hasattr(each, "narrow")],
            [each for each in weighers if hasattr(each, "rank")],
        )
        # Queries of late, encoded: most requests come with the same few objects.
        self._encoded: dict[int, tuple[CandidateQuery, bytes]] = {}
        self._board: HostIndex | None = None
        self._verdicts: Verdicts | None = None
        self._shapes: dict[tuple[Hashable, ...], EquivalenceClass] = {}

    def field(self, fleet: Fleet, request: SchedulingRequest, table: NodeTable) -> CachedPool | None:
        """The field for a question on the fleet as it is now; None if nothing can be kept for it.

        Raises: `SchedulerFault` if a plugin cannot tell its key.
        """
        if is_forced(request.spec) or not len(table):
            return None
        if any(place.step in ("force_hosts", "force_nodes") for place in request.places):
            # Placement is asked for the trees of a few hosts: a shape for these would serve nobody else.
            return None
        board = self._current_board(fleet, request, table)
        if board is None:
            return None
        parts = self._judging.parts(request)
        asked = tuple((self._encode(each), by_roots_alone(fleet, each)) for each in request.queries)
        key = (*asked, *parts.key)
        shape = self._shapes.pop(key, None)
        try:
            if shape is None or not shape.catch_up(request):
                shape = EquivalenceClass(board, request, parts.judged)
        except SchedulerFault:
            return None
        self._shapes[key] = shape
        if len(self._shapes) > min(MOST_SHAPES, 1 + _MOST_PLACES // len(board.layout)):
            del self._shapes[next(iter(self._shapes))]
        order = CandidateOrder(*self._ordering, request)
        progress = progress_at_start(request, table, fleet)
        pool = self._narrowed(board, shape, request, parts, progress)
        return None if pool is None else CachedPool(board, pool, request, parts.again, order, progress)

    def _narrowed(
        self,
        board: HostIndex,
        shape: EquivalenceClass,
        request: SchedulingRequest,
        parts: Parts,
        progress: GroupPlacement,
    ) -> EquivalenceClass | Narrowed | ClassWithoutHosts | None:
        """The shape, or if something is to be asked for this request alone the shape narrowed for it; None if
        a filter fails on some host: whether on one that is in play is the run's to find out."""
        if not (parts.asking or parts.own or request.spec.ignore_hosts or request.places):
            return shape
        verdicts = self._verdicts = self._verdicts or Verdicts(board)

        def narrow(first: GroupPlacement) -> Narrowed:
            own = OwnColumns(board, parts.own, request)
            return Narrowed(board, shape, verdicts, request, parts.judged, own, progress, first)

        try:
            few = None if parts.own else excluding(board, shape, request, parts.judged, progress, narrow)
            return narrow(progress) if few is None else few
        except SchedulerFault:
            return None

    def _encode(self, query: CandidateQuery) -> bytes:
        found = self._encoded.get(id(query))
        if found is None:
            if len(self._encoded) == _MOST_ENCODED:
                self._encoded.clear()
            # The query is kept as well: as long as it lives no other one has its id.
            found = self._encoded[id(query)] = query, _encode(query)
        return found[1]

    def _current_board(self, fleet: Fleet, request: SchedulingRequest, table: NodeTable) -> HostIndex | None:
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
                or board.options is not request.options
                or not board.sync(request)
            ):
                self._shapes.clear()
                if not _sound(request):
                    return None
                board = HostIndex(fleet, table, self._filters, self._weighers, request)
        except (CannotWeigh, SchedulerFault):
            self._shapes.clear()
            return None
        if self._shapes:
            self._verdicts = verdicts
        self._board = board
        return board


def _sound(request: SchedulingRequest) -> bool:
    """Whether weights are numbers."""
    return all(map(math.isfinite, request.options.multipliers.values()))
