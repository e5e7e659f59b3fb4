"""Alternates: for each instance that was placed, other hosts that could take it if its own fails."""

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
    """Finds as many alternates as the question says for each instance of a run, in its cell, best first.

    They are ranked by the weights that the last instance was placed by.

    Hosts that this run claimed come after the others, and each instance goes on in the ranking where the
    one before it stopped: so that a failure of many does not send all of them to the same host. When the
    time of the run is over, or the work that a decision may take is done, those found so far are all: the
    instances have their hosts.

    ``first``: the hosts that were found for the first instance.
    """

    def __init__(self, request: SchedulingRequest, table: NodeTable, field: HostPool) -> None:
        self._request = request
        self._wanted = request.num_alternates
        self._table = table
        self._field = field
        self.first: list[int] = []
        self._found: dict[int, Selection | None] = {}

    def of(self, placed: Sequence[Placed]) -> list[tuple[Selection, ...]]:
        """The alternates of each instance, as many as wanted or as there are."""
        wanted, field = self._wanted, self._field
        if not wanted:
            return [()] * len(placed)
        if len(placed) == 1:
            return [self._of_one(placed[0])]
        cells = {one.host: self._cell(one.host) for one in placed}
        pools: dict[int, _Pool] = {}
        promised: Counter[int] = Counter()
        result: list[tuple[Selection, ...]] = []
        for one in placed:
            cell = cells[one.host]
            if cell not in pools:
                here = [host for host in cells if cells[host] == cell]
                pools[cell] = _Pool(field.ranking(cell, here, wanted * len(placed)), self._by_weight(here))
            may = field.open_to(one.host, promised)
            others: list[Selection] = []
            for host, selection in self._selections(pools[cell].turn(), one.host, may):
                others.append(selection)
                if not result:
                    self.first.append(host)
                promised[field.index(host)] += 1
                if len(others) == wanted:
                    break
            result.append(tuple(others))
        return result

    def _of_one(self, one: Placed) -> tuple[Selection, ...]:
        """The usual case, where there is nothing to share out."""
        field = self._field
        may = field.open_to(one.host, _NOTHING_PROMISED)
        hosts = field.ranking(self._cell(one.host), (one.host,), self._wanted)
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
        """The hosts that an instance on ``claimed`` could go to, until time or work is used up."""
        with suppress(TooMuchWork):
            for host in hosts:
                if self._request.expired():
                    return
                selection = self._selection(host) if host != claimed and may(host) else None
                if selection is not None:
                    yield host, selection

    def _by_weight(self, claimed: Iterable[int]) -> list[int]:
        """Hosts that the run claimed, as far as they are still weighed, best first."""
        field = self._field
        used = [host for host in claimed if field.weighed(host)]
        tie_rank = self._table.tie_rank
        return sorted(used, key=lambda host: (-field.weight(host), tie_rank.item(field.index(host))))

    def _cell(self, host: int) -> int:
        return self._table.cell.item(self._field.index(host))

    def _selection(self, host: int) -> Selection | None:
        """The host with the first of its candidates that fits, None if none does."""
        if host not in self._found:
            candidate = next(self._field.candidates(host), None)
            self._found[host] = (
                None
                if candidate is None
                else selection_of(
                    self._table,
                    self._field.index(host),
                    candidate,
                    self._field.weight(host),
                    self._request.options.default_availability_zone,
                )
            )
        return self._found[host]


class _Pool:
    """The hosts of one cell that were weighed, best first, ranked only as far as they are asked for."""

    def __init__(self, ranking: Iterator[int], claimed: Sequence[int]) -> None:
        self._ranking = ranking
        self._claimed = claimed
        self._ranked: list[int] = []
        self._next = 0

    def turn(self) -> Iterator[int]:
        """Hosts from where the last turn stopped, once round; at last those that the run claimed."""
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
