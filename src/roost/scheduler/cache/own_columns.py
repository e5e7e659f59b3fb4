"""The numbers of weighers that are asked for one request, beside the cached columns."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Float64, Rows
from roost.scheduler.cache.columns import MoreColumns, OwnColumn, WeigherColumns
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import SchedulerFault
from roost.scheduler.plugins.declarations import has_domain, minval_of
from roost.scheduler.plugins.plugin_calls import ask_weigher
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.pool.weights import clean_numbers, multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


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
        self._weighers = weighers
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
        if self._weighers and allowed > 1:
            chosen = places()
            view = HostView(host_index.table, host_index.totals, chosen)
            for rank, weigher in self._weighers:
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
        if any(has_domain(weigher) for weigher, _ in self._found):
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
        return OwnColumn(weigher.name, rank, size, multiplier, minval_of(weigher))

    def _put(self, found: tuple[Weigher, OwnColumn], places: Rows, raw: Float64) -> None:
        column = found[1]
        column.raw[places] = clean_numbers(np.asarray(raw, dtype=np.float64), column.minval)
