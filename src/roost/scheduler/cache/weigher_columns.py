"""The numbers of the weighers that apply to a request: cached ones, and those asked for the request alone."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from roost.fleet.columns import Float64, Rows
from roost.scheduler.cache.host_columns import PlaceLayout
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.weights import BlockScores
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import SchedulerFault
from roost.scheduler.plugins.plugin_calls import ask_weigher
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.pool.weights import clean_numbers, multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class WeigherColumns(Protocol):
    """One column for each weigher that returns numbers, in the order of the weighers.

    ``names``: of the weighers; ``raws``: numbers before normalisation, float64[places]; ``multipliers``: a
    number, or float64[places]; ``minvals``: the number that is normalised to 0, -inf where it is the least.
    ``block_scores``: weights by the first ``leading`` columns, which are those of the host index.
    """

    layout: PlaceLayout
    block_scores: BlockScores
    leading: int
    names: list[str]
    raws: list[Float64]
    multipliers: list[Float64 | float]
    minvals: list[float]

    def numbers(self, place: int) -> list[float]:
        """Return the numbers of one host."""


class MoreColumns:
    """The columns of a host index together with those of one request.

    ``origins``: for each column its number in the host index, -1 if it is not there.
    """

    def __init__(self, base: WeigherColumns, weigher_ranks: list[int], more: list["OwnColumn"]) -> None:
        """``weigher_ranks``: for each column of the host index the number of its weigher among all,
        ascending."""
        self.layout = base.layout
        self._base = base
        self.own = more
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
