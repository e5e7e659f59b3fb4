"""The masks of filters that look at the request, by the key of the filter."""

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.host_index import HostIndex, put_mask
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST_VERDICTS = 4_096
"""Masks kept; one more drops the least recently used one. Each takes a bit for each host."""


class Verdicts:
    """The masks of filters by key, for one host index. Each is brought up to date when it is used."""

    def __init__(self, host_index: HostIndex) -> None:
        self._host_index = host_index
        self._verdicts: dict[tuple[str, Hashable], _Verdict] = {}

    def mask(self, plugin: Filter, key: Hashable, request: SchedulingRequest) -> Bools | None:
        """Return the hosts that a filter passes: bool[places], None for all. Raises: `SchedulerFault`."""
        verdict = self._verdicts.pop((plugin.name, key), None)
        if verdict is None or not verdict.catch_up(self._host_index, plugin, request):
            verdict = _Verdict(self._host_index, plugin, request)
        self._verdicts[plugin.name, key] = verdict
        if len(self._verdicts) > MOST_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        return verdict.mask(len(self._host_index.layout))


class _Verdict:
    __slots__ = ("_at", "_packed")

    def __init__(self, host_index: HostIndex, plugin: Filter, request: SchedulingRequest) -> None:
        self._at = log_of(host_index, plugin).end
        view = HostView(host_index.table, host_index.totals)
        self._put(ask_filter(plugin, view, request, GroupPlacement()))

    def mask(self, places: int) -> Bools | None:
        if self._packed is None:
            return None
        return np.unpackbits(self._packed, count=places).view(np.bool_)

    def catch_up(self, host_index: HostIndex, plugin: Filter, request: SchedulingRequest) -> bool:
        """Ask the filter again about changed hosts; False if building the mask anew is cheaper."""
        log = log_of(host_index, plugin)
        if self._at == log.end:
            return True
        changed = log.since(self._at)
        if changed is None:
            return False
        places = np.array([*changed], dtype=np.intp)
        answer = ask_filter(
            plugin, HostView(host_index.table, host_index.totals, places), request, GroupPlacement()
        )
        size = len(host_index.layout)
        self._put(put_mask(self.mask(size), places, answer, size))
        self._at = log.end
        return True

    def _put(self, mask: Bools | None) -> None:
        self._packed: npt.NDArray[np.uint8] | None = None
        if mask is not None and not mask.all():
            self._packed = np.packbits(mask)


def log_of(host_index: HostIndex, plugin: Filter) -> InvalidationLog:
    """Return the log of the places with changes that a filter may look at."""
    return host_index.invalidations if plugin.looks_at_trees else host_index.reported
