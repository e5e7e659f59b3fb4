"""The host pool that is made anew for each run, from any candidate source and with any plugins."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from roost.fleet.columns import Bools
from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.candidates.candidate_source import CandidateSource, HostView, OneHost
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_key
from roost.scheduler.plugins.plugins import Filter, Weigher, in_order
from roost.scheduler.pool.host_pool import KNOWN, OFFERED, Numbers
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.places import ignored, is_forced
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start


class FreshPool:
    """A `HostPool` of the hosts of a candidate source. The number of a host is its position in the source.

    ``progress``: the members of the server group; by default those that the spec names.
    """

    def __init__(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        source: CandidateSource,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        progress: GroupPlacement | None = None,
    ) -> None:
        self._request = request
        self._table = table
        self._source = source
        enabled = () if is_forced(request.spec) else in_order(filters)
        ordered = [(plugin, ask_key(plugin, request) is not None) for plugin in enabled]
        self._once = [each for each in ordered if not each[0].depends_on_claims]
        self._again = [each for each in ordered if each[0].depends_on_claims]
        self._weighers = weighers
        self._order = CandidateOrder(filters, weighers, request)
        self._grouped = request.spec.group is not None
        self._progress = progress_at_start(request, table) if progress is None else progress
        self._remaining: Bools | None = None
        self._host_weights: HostWeights | None = None
        self._changed: Sequence[int] = ()
        self._within: Bools | None = None
        self._open: Bools | None = None

    @property
    def offered(self) -> int:
        """The number of hosts of the candidate source."""
        return len(self._source.index)

    def ready(self) -> list[Step]:
        steps: list[Step] = []
        if self._remaining is None:
            steps += [Step(KNOWN, len(self._table)), Step(OFFERED, self.offered)]
            self._remaining = self._filter(self._in_place(steps), self._once, self._progress, steps)
        allowed = self._filter_again(self._progress, steps)
        weights = self._host_weights
        if weights is None or (allowed & ~weights.allowed).any():
            self._host_weights = HostWeights(
                self._table, self._source, allowed, self._weighers, self._request, self._progress
            )
        else:
            self._host_weights = weights.narrowed(allowed)
            self._host_weights.claimed(self._changed)
        self._within = None
        return steps

    @property
    def allowed(self) -> Indexes:
        """The nodes that passed the places and all filters at the last `ready`: intp[n]."""
        return self._source.index[self._weights.allowed]

    def best(self, among: int) -> Sequence[int]:
        found: list[int] = self._weights.best(among, self._within).tolist()
        return found

    def index(self, host: int) -> int:
        return self._source.index.item(host)

    def weight(self, host: int) -> float:
        return self._weights.weight(host)

    def numbers(self, host: int) -> Numbers:
        numbers = self._weights.numbers(host)
        return lambda: numbers

    def candidates(self, host: int) -> Iterator[Candidate]:
        candidates = self._source.candidates(host)
        if not self._order.matters:
            return candidates
        return self._order.of(OneHost(self._table, self._source, host, self._source.level), candidates)

    def drop(self, host: int) -> None:
        # The instances are equal: what one cannot have the next cannot have either.
        self._hosts[host] = False
        self._within = self._hosts

    def claimed(self, host: int, candidate: Candidate) -> None:
        self._changed = self._source.claimed(candidate)
        if self._grouped:
            self._progress.members[self.index(host)] += 1

    def ranking(self, cell: int, claimed: Collection[int], expected: int) -> Iterator[int]:
        within = self._table.cell[self._source.index] == cell
        within[list(claimed)] = False
        done, many = 0, expected + 8
        while len(ranked := self._weights.best(many, within)) > done:
            yield from ranked[done:].tolist()
            done, many = len(ranked), many * 8

    def weighed(self, host: int) -> bool:
        return bool(self._weights.allowed[host])

    def open_to(self, leaving: int, promised: Counter[int]) -> Callable[[int], bool]:
        if self._grouped:
            members = self._progress.members + promised
            members[self.index(leaving)] -= 1
            return self._filter_again(GroupPlacement(+members, self._progress.present), []).item
        if self._open is None:
            self._open = self._filter_again(self._progress, [])
        return self._open.item

    @property
    def _hosts(self) -> Bools:
        assert self._remaining is not None
        return self._remaining

    @property
    def _weights(self) -> HostWeights:
        assert self._host_weights is not None
        return self._host_weights

    def _filter_again(self, progress: GroupPlacement, steps: list[Step]) -> Bools:
        return self._filter(self._hosts.copy(), self._again, progress, steps)

    def _filter(
        self,
        remaining: Bools,
        filters: Sequence[tuple[Filter, bool]],
        progress: GroupPlacement,
        steps: list[Step],
    ) -> Bools:
        """Return ``remaining`` without the hosts that the filters reject, and append a step for each filter.

        ``filters``: each with whether it applies to the request. No filter is asked once nothing is left.
        """
        left = int(np.count_nonzero(remaining))
        for plugin, applies in filters:
            if not left:
                break
            if applies:
                hosts = HostView(self._table, self._source, None if left == len(remaining) else remaining)
                mask = ask_filter(plugin, hosts, self._request, progress)
                if mask is not None and not mask.all():
                    remaining[remaining] = mask
                    left = int(np.count_nonzero(remaining))
            steps.append(Step(plugin.name, left))
        return remaining

    def _in_place(self, steps: list[Step]) -> Bools:
        """Return the hosts in the places that the request names: bool[n]."""
        remaining = np.ones(len(self._source.index), dtype=np.bool_)
        for place in (*ignored(self._request.spec, self._table), *self._request.places):
            remaining &= np.isin(self._source.index, place.nodes, invert=not place.allowed)
            steps.append(Step(place.step, int(np.count_nonzero(remaining))))
        return remaining
