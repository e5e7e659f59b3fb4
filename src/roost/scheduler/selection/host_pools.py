"""`HostPools`: what all runs of one scheduler choose hosts from and by."""

from collections.abc import Sequence

from roost.fleet import Fleet
from roost.scheduler.cache.equivalence_cache import EquivalenceCache
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.candidates.fallback_candidates import fleet_candidates
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.host_pool import HostPool
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start


class HostPools:
    """Makes the host pool of each run, from a node table and the plugins of one scheduler.

    Results that hold for further requests are kept in an equivalence cache, from one decision to the next.

    Args:
        table: the node table, which its owner keeps up to date.
        options: filters, weighers and the rest.
        plugins: by default those that the options enable.

    Raises `UnknownPlugin` for a filter or weigher that is not there.
    """

    def __init__(
        self, table: NodeTable, options: SchedulerOptions | None = None, plugins: Plugins | None = None
    ) -> None:
        self.table = table
        self.options = options or SchedulerOptions()
        self.plugins = plugins or Plugins.enabled(self.options)
        self._cache = EquivalenceCache(self.plugins.filters, self.plugins.weighers)

    def of_fleet(self, fleet: Fleet, request: SchedulingRequest) -> HostPool:
        """Return the pool of a request on the fleet as it is now, from cached results where that can be.

        Raises: `SchedulerFault`.
        """
        cached = self._cache.pool(fleet, request, self.table)
        return self.fresh_of_fleet(fleet, request) if cached is None else cached

    def fresh_of_fleet(
        self,
        fleet: Fleet,
        request: SchedulingRequest,
        filters: Sequence[Filter] | None = None,
        only: int | None = None,
    ) -> FreshPool:
        """As `of_fleet`, without cached results. ``filters``: in place of those of the plugins. ``only``: the
        index of the one host to include."""
        source = fleet_candidates(fleet, request, self.table, only)
        progress = progress_at_start(request, self.table, fleet)
        return self.of_source(source, request, progress, filters)

    def fitting(self, fleet: Fleet, request: SchedulingRequest) -> Indexes:
        """Return the nodes with room for the first instance of a request that all filters let pass: intp.

        Nothing is cached but the candidates. Raises: `SchedulerFault`, `BadRequestSpec`.
        """
        self.table.seen_since(request.oldest_heartbeat)
        pool = self.fresh_of_fleet(fleet, request)
        pool.ready()
        return pool.allowed

    def of_source(
        self,
        source: CandidateSource,
        request: SchedulingRequest,
        progress: GroupPlacement | None = None,
        filters: Sequence[Filter] | None = None,
    ) -> FreshPool:
        """Return the pool of the hosts of a candidate source. For ``progress`` see `FreshPool`."""
        chosen = self.plugins.filters if filters is None else filters
        return FreshPool(request, self.table, source, chosen, self.plugins.weighers, progress)
