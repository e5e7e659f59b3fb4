"""The verdicts of filters that look at the request, by what of it they look at."""

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.host_index import HostIndex, put_mask
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.declarations import looks_at_trees
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST_VERDICTS = 4_096
"""Masks kept; one more drives out the one not used for longest. Each is a bit for each host."""


class Verdicts:
    """The masks of filters by key, each brought up to date when it is used. For one board."""

    def __init__(self, board: HostIndex) -> None:
        self._board = board
        self._kept: dict[tuple[str, Hashable], _Verdict] = {}

    def mask(self, plugin: Filter, key: Hashable, request: SchedulingRequest) -> Bools | None:
        """Whether each host may be used: bool[places], None if all may. Raises: `SchedulerFault`."""
        verdict = self._kept.pop((plugin.name, key), None)
        if verdict is None or not verdict.catch_up(self._board, plugin, request):
            verdict = _Verdict(self._board, plugin, request)
        self._kept[plugin.name, key] = verdict
        if len(self._kept) > MOST_VERDICTS:
            del self._kept[next(iter(self._kept))]
        return verdict.mask(len(self._board.layout))


class _Verdict:
    __slots__ = ("_at", "_packed")

    def __init__(self, board: HostIndex, plugin: Filter, request: SchedulingRequest) -> None:
        self._at = log_of(board, plugin).end
        view = HostView(board.table, board.totals)
        self._put(ask_filter(plugin, view, request, GroupPlacement()))

    def mask(self, places: int) -> Bools | None:
        if self._packed is None:
            return None
        return np.unpackbits(self._packed, count=places).view(np.bool_)

    def catch_up(self, board: HostIndex, plugin: Filter, request: SchedulingRequest) -> bool:
        """Ask again about hosts of which something has changed; False if it is better to begin anew."""
        log = log_of(board, plugin)
        if self._at == log.end:
            return True
        changed = log.since(self._at)
        if changed is None:
            return False
        places = np.array([*changed], dtype=np.intp)
        answer = ask_filter(plugin, HostView(board.table, board.totals, places), request, GroupPlacement())
        size = len(board.layout)
        self._put(put_mask(self.mask(size), places, answer, size))
        self._at = log.end
        return True

    def _put(self, mask: Bools | None) -> None:
        self._packed: npt.NDArray[np.uint8] | None = None
        if mask is not None and not mask.all():
            self._packed = np.packbits(mask)


def log_of(board: HostIndex, plugin: Filter) -> InvalidationLog:
    """The log of the places where something has changed that a filter looks at."""
    return board.invalidations if looks_at_trees(plugin) else board.reported
