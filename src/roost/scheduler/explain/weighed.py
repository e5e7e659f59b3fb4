"""The weights of the best hosts for a request, weigher by weigher."""

from roost.fleet import Fleet
from roost.model.reasons import WeighedHost
from roost.scheduler.candidates.fallback_candidates import fleet_candidates
from roost.scheduler.explain.every_host import name_of
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.selection import Plugins


def weighed_hosts(
    fleet: Fleet, request: SchedulingRequest, table: NodeTable, plugins: Plugins, most: int
) -> tuple[WeighedHost, ...]:
    """Return the best ``most`` hosts for the first instance of a request, best first, with the numbers of all
    weighers.

    Raises: `SchedulerError`.
    """
    source = fleet_candidates(fleet, request, table)
    progress = progress_at_start(request, table, fleet)
    pool = FreshPool(request, table, source, plugins.filters, plugins.weighers, progress)
    pool.ready()
    return tuple(
        WeighedHost(name_of(table, pool.index(host)), pool.weight(host), pool.numbers(host)())
        for host in pool.best(most)
    )
