"""A candidate source made up for tests of the selection: any capacities, candidates and refusals."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from roost.fleet.columns import Bools, Float64, Int64
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import CandidateSource, HostView, ProviderLevels
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_options import MetricsOptions
from roost.scheduler.plugins.plugins import Filter, Plugins, Weigher
from roost.scheduler.request.scheduling_request import (
    GroupPlacement,
    HostRequest,
    PlacementQueries,
    SchedulingRequest,
)
from roost.scheduler.selection.claim_result import CLAIMED, ClaimResult, ClaimVerdict
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.selection import Selecting, choose
from support.clouds import NOW, report, spec


class MadeUp(CandidateSource):
    """Host i of the table offers ``sizes[i]`` candidates of one VCPU each, as long as it has VCPU free."""

    def __init__(self, free: Sequence[int], sizes: Sequence[int] | None = None) -> None:
        super().__init__(np.arange(len(free)))
        self.left = list(free)
        self._sizes = sizes or [1] * len(free)
        self._capacity = np.array(free, dtype=np.int64)

    def candidates(self, position: int) -> Iterator[Candidate]:
        for number in range(self._sizes[position]):
            if self.left[position] > 0:
                yield Candidate(f"node{position}", {f"node{position}": {"VCPU": 1}}, {"": [f"way{number}"]})

    def claimed(self, candidate: Candidate) -> Sequence[int]:
        for provider in candidate.allocations:
            self.left[self.hosts_of(provider)[0]] -= 1
        return super().claimed(candidate)

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        [host] = self.hosts_of(provider)
        capacity, used = self.both(resource_class)
        return capacity.item(host), used.item(host)

    def providers(self, resource_class: str) -> ProviderLevels:
        capacity, used = self.both(resource_class)
        return ProviderLevels(np.arange(len(self.index)), capacity, used)

    def having(self, trait: str) -> Bools:
        """``EVEN`` have the hosts with an even number."""
        return (self.index % 2 == 0) & (trait == "EVEN")

    def hosts_of(self, provider: str) -> Sequence[int]:
        return (int(provider.removeprefix("node")),)

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        if resource_class != "VCPU":
            return np.zeros(len(self.index), dtype=np.int64), np.zeros(len(self.index), dtype=np.int64)
        return self._capacity, self._capacity - np.array(self.left)


def hosts(count: int, cells: Sequence[str] = ("cell1",)) -> NodeTable:
    """A table of ``host0`` and on, dealt out to the cells in turn."""
    return NodeTable(
        report(f"host{number}", f"node{number}", cell=cells[number % len(cells)]) for number in range(count)
    )


def scheduling_request(
    count: int = 1,
    *,
    of: RequestSpec | None = None,
    num_alternates: int = 0,
    min_count: int | None = None,
    **options: Any,
) -> SchedulingRequest:
    """A question for instances ``i0`` and on."""
    names = tuple(f"i{number}" for number in range(count))
    asked = HostRequest(of or spec(), names, num_alternates, min_count or 0, run="run")
    queries = PlacementQueries(CandidateQuery((RequestGroup({"VCPU": 1}),)))
    return SchedulingRequest.of(asked, queries, SchedulerOptions(**options), NOW)


def by_metrics(
    ratios: dict[str, float], required: bool = True, unavailable: float = -10000.0
) -> dict[str, MetricsOptions]:
    """``SchedulerOptions.plugins`` with ratios of metrics."""
    return {"MetricsWeigher": MetricsOptions(ratios, required, unavailable)}


def named_filters(*names: str) -> list[Filter]:
    """The filters of these names, with their default options."""
    return list(Plugins.enabled(SchedulerOptions(filters=names)).filters)


def named_weighers(*names: str, **options: Any) -> list[Weigher]:
    """The weighers of these names, with options of a scheduler."""
    return list(Plugins.enabled(SchedulerOptions(weighers=names, **options)).weighers)


class Free:
    """Weighs by free VCPU."""

    name = "free"
    multiplier_key = "free_weight_multiplier"
    default_multiplier = 1.0

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        return hosts.free("VCPU")


class Only:
    """Lets through the hosts with these indexes."""

    depends_on_claims = False

    def __init__(self, *indexes: int, name: str = "only") -> None:
        self._indexes = indexes
        self.name = name

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        return np.isin(hosts.index, self._indexes)


def plugins(*filters: object, weighers: Sequence[object] = (Free(),)) -> Plugins:
    """Loaded plugins, of which some may have been loaded before."""
    return Plugins(
        [each if isinstance(each, Filter) else Filter.of(each) for each in filters],
        [each if isinstance(each, Weigher) else Weigher.of(each) for each in weighers],
    )


def select(
    request: SchedulingRequest,
    table: NodeTable,
    source: CandidateSource,
    plugins: Plugins,
    random: Callable[[int], int],
) -> Selecting:
    """A selection from a candidate source."""
    return choose(request, table, HostPools(table, plugins=plugins).of_source(source, request), random)


def driven(
    selecting: Selecting, refuse: Callable[[Claim], str | None] = lambda _: None
) -> tuple[Outcome, list[Claim]]:
    """A selection carried through; ``refuse`` says which claims are refused. Returns all claims asked for."""
    claims: list[Claim] = []
    try:
        claim = next(selecting)
        while True:
            claims.append(claim)
            refusal = refuse(claim)
            claim = selecting.send(CLAIMED if refusal is None else ClaimResult(ClaimVerdict.REFUSED, refusal))
    except StopIteration as end:
        return end.value, claims


def where(outcome: Outcome) -> list[str]:
    """The hosts that the instances went to."""
    return [each.selected.host for each in outcome.destinations]


def no_chance(_: int) -> int:
    raise AssertionError("nothing was left to chance")
