"""What the best hosts weigh for a request, weigher by weigher."""

from roost.fleet import Fleet
from roost.model.reasons import WeighedHost
from roost.scheduler.candidates.paired_offers import fleet_offers
from roost.scheduler.explain.every_host import name_of
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.pool.offered_field import OfferedField
from roost.scheduler.request.question import Question
from roost.scheduler.selection.selection import Plugins


def weighed_hosts(
    fleet: Fleet, question: Question, table: NodeTable, plugins: Plugins, most: int
) -> tuple[WeighedHost, ...]:
    """The best ``most`` hosts for the first instance of a question, best first, with the numbers that make up
    their weights. Raises: `SchedulerError`."""
    offers = fleet_offers(fleet, question, table)
    progress = progress_at_start(question, table, fleet)
    field = OfferedField(question, table, offers, plugins.filters, plugins.weighers, progress)
    field.ready()
    return tuple(
        WeighedHost(name_of(table, field.index(host)), field.weight(host), field.numbers(host)())
        for host in field.best(most)
    )
