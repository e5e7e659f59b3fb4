"""Alternates: other hosts for each placed instance, in case the build on its host fails."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from roost.fleet.errors import TooMuchWork
from roost.model.spec import Selection
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.host_pool import HostPool
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Placed, selection_of

_NOTHING_PROMISED: Counter[int] = Counter()


class Alternates:
    """Finds alternates for each instance of a run, in its cell, best first, as many as the request wants.

    They are ranked by the weights with which the last instance was placed.

    Hosts that this run claimed come after the others, and each instance goes on in the ranking where the one
    before it stopped, so that the failures of many do not send all of them to one host. When the time or the
    work of the run is used up, the alternates found so far are all: the instances have their hosts.

    ``first``: the hosts that were found for the first instance.
    """

    def __init__(self, request: SchedulingRequest, table: NodeTable, pool: HostPool) -> None:
        self._request = request
        self._wanted = request.num_alternates
        self._table = table
        self._pool = pool
        self.first: list[int] = []
        self._found: dict[int, Selection | None] = {}

    def of(self, placed: Sequence[Placed]) -> list[tuple[Selection, ...]]:
        """Return the alternates of each instance, as many as wanted or as there are."""
        wanted, pool = self._wanted, self._pool
        if not wanted:
            return [()] * len(placed)
        if len(placed) == 1:
            return [self._of_one(placed[0])]
        cells = {one.host: self._cell(one.host) for one in placed}
        rankings: dict[int, _CellRanking] = {}
        promised: Counter[int] = Counter()
        result: list[tuple[Selection, ...]] = []
        for one in placed:
            cell = cells[one.host]
            if cell not in rankings:
                here = [host for host in cells if cells[host] == cell]
                rankings[cell] = _CellRanking(
                    pool.ranking(cell, here, wanted * len(placed)), self._by_weight(here)
                )
            may = pool.open_to(one.host, promised)
            others: list[Selection] = []
            for host, selection in self._selections(rankings[cell].turn(), one.host, may):
                others.append(selection)
                if not result:
                    self.first.append(host)
                promised[pool.index(host)] += 1
                if len(others) == wanted:
                    break
            result.append(tuple(others))
        return result

    def _of_one(self, one: Placed) -> tuple[Selection, ...]:
        """Return the alternates of a run with one instance, the usual case, where nothing has to be shared
        out."""
        pool = self._pool
        may = pool.open_to(one.host, _NOTHING_PROMISED)
        hosts = pool.ranking(self._cell(one.host), (one.host,), self._wanted)
        others: list[Selection] = []
        for host, selection in self._selections(hosts, one.host, may):
            others.append(selection)
            self.first.append(host)
            if len(others) == self._wanted:
                break
        return tuple(others)

    def _selections(
        self, hosts: Iterator[int], claimed: int, may: Callable[[int], bool]
    ) -> Iterator[tuple[int, Selection]]:
        """Yield the hosts that an instance on ``claimed`` could go to, until time or work is used up."""
        with suppress(TooMuchWork):
            for host in hosts:
                if self._request.expired():
                    return
                selection = self._selection(host) if host != claimed and may(host) else None
                if selection is not None:
                    yield host, selection

    def _by_weight(self, claimed: Iterable[int]) -> list[int]:
        """Return the hosts that the run claimed and that still have a weight, best first."""
        pool = self._pool
        used = [host for host in claimed if pool.weighed(host)]
        tie_rank = self._table.tie_rank
        return sorted(used, key=lambda host: (-pool.weight(host), tie_rank.item(pool.index(host))))

    def _cell(self, host: int) -> int:
        return self._table.cell.item(self._pool.index(host))

    def _selection(self, host: int) -> Selection | None:
        """Return the host with the first of its candidates that fits, None if none does."""
        if host not in self._found:
            candidate = next(self._pool.candidates(host), None)
            self._found[host] = (
                None
                if candidate is None
                else selection_of(
                    self._table,
                    self._pool.index(host),
                    candidate,
                    self._pool.weight(host),
                    self._request.options.default_availability_zone,
                )
            )
        return self._found[host]


class _CellRanking:
    """The weighed hosts of one cell, best first, ranked only as far as they are read."""

    def __init__(self, ranking: Iterator[int], claimed: Sequence[int]) -> None:
        self._ranking = ranking
        self._claimed = claimed
        self._ranked: list[int] = []
        self._next = 0

    def turn(self) -> Iterator[int]:
        """Yield hosts from where the last turn stopped, once round; at last those that the run claimed."""
        start = self._next
        while self._next < len(self._ranked) or self._rank_more():
            self._next += 1
            yield self._ranked[self._next - 1]
        self._next = 0
        while self._next < start:
            self._next += 1
            yield self._ranked[self._next - 1]
        yield from self._claimed

    def _rank_more(self) -> bool:
        host = next(self._ranking, None)
        if host is not None:
            self._ranked.append(host)
        return host is not None
