"""Answers of plugins about one request, beside those that the host index has about all requests.

`OwnColumns`: the numbers of weighers. `Verdicts`: the masks of filters whose key has many values, by key.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Rows
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.host_index import HostIndex, put_mask
from roost.scheduler.cache.value_range import WeigherColumns
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import SchedulerFault
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_weigher
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.weights import clean_numbers, multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class MoreColumns:
    """The columns of a host index together with those of one request.

    ``origins``: for each column its number in the host index, -1 if it is not there.
    """

    def __init__(self, base: WeigherColumns, weigher_ranks: list[int], more: list["OwnColumn"]) -> None:
        """``weigher_ranks``: for each column of the host index the number of its weigher among all,
        ascending."""
        self.layout = base.layout
        self._base = base
        found = [(rank, number, None) for number, rank in enumerate(weigher_ranks)]
        every = sorted([*found, *((one.rank, -1, one) for one in more)], key=lambda each: each[0])
        self.origins = [number for _, number, _ in every]
        self.block_scores = base.block_scores
        self.leading = self.origins.index(-1) if -1 in self.origins else len(self.origins)
        self.names = [base.names[n] if one is None else one.name for _, n, one in every]
        self.raws = [base.raws[n] if one is None else one.raw for _, n, one in every]
        self.multipliers = [base.multipliers[n] if one is None else one.multiplier for _, n, one in every]
        self.minvals = [base.minvals[n] if one is None else one.minval for _, n, one in every]

    def numbers(self, place: int) -> list[float]:
        shared = self._base.numbers(place)
        return [
            shared[origin] if origin >= 0 else raw.item(place)
            for origin, raw in zip(self.origins, self.raws, strict=True)
        ]


class OwnColumn:
    """The numbers of a weigher that is asked for one request. ``rank``: its number among all weighers."""

    __slots__ = ("minval", "multiplier", "name", "rank", "raw")

    def __init__(self, name: str, rank: int, places: int, multiplier: Float64 | float, minval: float) -> None:
        self.name = name
        self.rank = rank
        self.raw: Float64 = np.zeros(places)
        self.multiplier = multiplier
        self.minval = minval


class OwnColumns:
    """Asks the weighers that apply to a request and whose results are not cached.

    ``weighers``: each with its number among all weighers. Where none of them returns numbers, the columns are
    those of the host index.
    """

    def __init__(
        self, host_index: HostIndex, weighers: Sequence[tuple[int, Weigher]], request: SchedulingRequest
    ) -> None:
        self._host_index = host_index
        self._request = request
        self.weighers = weighers
        self._found: list[tuple[Weigher, OwnColumn]] = []
        self._columns: WeigherColumns = host_index

    def numbers(self, place: int) -> list[float]:
        """Return the numbers of one host."""
        return self._columns.numbers(place)

    def asked(
        self, allowed: int, places: Callable[[], Rows], progress: GroupPlacement
    ) -> tuple[WeigherColumns, Sequence[int]]:
        """Return the columns of the request, and the number of each in the host index (-1: not there).

        ``places``: of the ``allowed`` hosts, in the order that breaks ties. A single host is not weighed.
        """
        host_index = self._host_index
        self._found, self._columns = [], host_index
        if self.weighers and allowed > 1:
            chosen = places()
            view = HostView(host_index.table, host_index.totals, chosen)
            for rank, weigher in self.weighers:
                raw = ask_weigher(weigher, view, self._request, progress)
                if raw is not None:
                    self._found.append((weigher, self._column(rank, weigher, view, chosen)))
                    self._put(self._found[-1], chosen, raw)
        if not self._found:
            return host_index, range(len(host_index.raws))
        more = MoreColumns(host_index, host_index.weigher_ranks, [column for _, column in self._found])
        self._columns = more
        return more, more.origins

    def ask_again(
        self, places: Iterable[int], progress: GroupPlacement, allows: Callable[[int], bool]
    ) -> bool:
        """Ask the weighers again about allowed hosts that a claim has changed.

        Returns whether the numbers of all hosts must be asked for anew.
        """
        if any(weigher.reads_other_hosts for weigher, _ in self._found):
            return True
        chosen = np.array(sorted(filter(allows, places)), dtype=np.intp)
        if not self._found or not len(chosen):
            return False
        view = HostView(self._host_index.table, self._host_index.totals, chosen)
        for found in self._found:
            raw = ask_weigher(found[0], view, self._request, progress)
            if raw is None:
                name = found[0].name
                raise SchedulerFault(
                    f"weigher {name} failed: it had numbers for this request, and now has none"
                )
            self._put(found, chosen, raw)
        return False

    def _column(self, rank: int, weigher: Weigher, view: HostView, chosen: Rows) -> OwnColumn:
        size = len(self._host_index.layout)
        multiplier = multiplier_of(view, weigher, self._request)
        if not isinstance(multiplier, float):
            column: Float64 = np.zeros(size)
            column[chosen] = multiplier
            multiplier = column
        return OwnColumn(weigher.name, rank, size, multiplier, weigher.minval)

    def _put(self, found: tuple[Weigher, OwnColumn], places: Rows, raw: Float64) -> None:
        column = found[1]
        column.raw[places] = clean_numbers(np.asarray(raw, dtype=np.float64), column.minval)


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
