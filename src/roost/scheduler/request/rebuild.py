"""A rebuild: an instance gets a new image on the host where it is.

Nothing is claimed, because the instance holds what it needs. Only filters with ``runs_on_rebuild`` judge the
host: those that look at the image.

Source: ``SchedulerManager.select_destinations`` of Nova with the hint ``_nova_check_type``.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from roost.fleet.columns import Bools, Int64
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import CandidateSource, ProviderLevels
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.request.places import target_of
from roost.scheduler.request.scheduling_request import PlacementQueries, SchedulingRequest
from roost.scheduler.selection.claim_result import CLAIMED
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome
from roost.scheduler.selection.running_selection import RunningSelection
from roost.scheduler.selection.selection import choose

NOTHING = PlacementQueries(CandidateQuery(groups=()))
"""The queries of a rebuild: a single query without groups, which asks for nothing."""


def is_rebuild(spec: RequestSpec) -> bool:
    """Return whether the request is a rebuild."""
    return spec.operation == "rebuild"


def judge_rebuild(request: SchedulingRequest, pools: HostPools) -> Outcome:
    """Judge the image on the node where the instance is; the outcome selects that node, without allocations.

    Raises:
        BadRequestSpec: the request names no host, or an unknown one.
    """
    table = pools.table
    nodes = target_of(request.spec, table)
    if nodes is None:
        raise BadRequestSpec("a rebuild names the host of its instance: requested_destination has none")
    filters = [plugin for plugin in pools.plugins.filters if plugin.runs_on_rebuild]
    pool = FreshPool(request, table, _Here(table, nodes), filters, ())
    running = RunningSelection(choose(request, table, pool, lambda n: 0))
    while running.claim is not None:
        running.answer(CLAIMED)
    return running.outcome


class _Here(CandidateSource):
    """A candidate source of given nodes, whose candidates have no allocations."""

    def __init__(self, table: NodeTable, nodes: Sequence[int]) -> None:
        super().__init__(np.array(sorted(nodes), dtype=np.intp))
        self._table = table

    def candidates(self, position: int) -> Iterator[Candidate]:
        yield Candidate(self._table.nodes[self.index.item(position)], {}, {})

    def providers(self, resource_class: str) -> ProviderLevels:
        nothing = np.zeros(0, dtype=np.int64)
        return ProviderLevels(np.zeros(0, dtype=np.intp), nothing, nothing)

    def having(self, trait: str) -> Bools:
        return np.zeros(len(self.index), dtype=np.bool_)

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        return 0, 0

    def hosts_of(self, provider: str) -> Sequence[int]:
        return ()

    def _sums(self, resource_class: str) -> tuple[Int64, Int64]:
        return np.zeros(len(self.index), dtype=np.int64), np.zeros(len(self.index), dtype=np.int64)
