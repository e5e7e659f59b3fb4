"""What the best hosts weigh for a request, weigher by weigher."""

from roost.fleet import Fleet
from roost.model.reasons import WeighedHost
from roost.scheduler.candidates.fallback_candidates import fleet_offers
from roost.scheduler.explain.every_host import name_of
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.selection import Plugins


def weighed_hosts(
    fleet: Fleet, request: SchedulingRequest, table: NodeTable, plugins: Plugins, most: int
) -> tuple[WeighedHost, ...]:
    """The best ``most`` hosts for the first instance of a question, best first, with the numbers that make up
    their weights. Raises: `SchedulerError`."""
    offers = fleet_offers(fleet, request, table)
    progress = progress_at_start(request, table, fleet)
    field = FreshPool(request, table, offers, plugins.filters, plugins.weighers, progress)
    field.ready()
    return tuple(
        WeighedHost(name_of(table, field.index(host)), field.weight(host), field.numbers(host)())
        for host in field.best(most)
    )
