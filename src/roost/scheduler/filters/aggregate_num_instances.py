"""Hosts with fewer instances than their aggregates allow."""

from roost.fleet.columns import Bools
from roost.scheduler.aggregate_numbers import least_integer
from roost.scheduler.filters.num_instances import LIMIT_OPTIONS, NumInstancesOptions
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class AggregateNumInstancesFilter:
    """Fewer instances than the metadata ``max_instances_per_host`` of the host's aggregates says, those of
    this run counted. Of several aggregates the least number counts; of none, or where one is no integer, the
    option. Source: Nova's filter of this name.
    """

    name = "AggregateNumInstancesFilter"
    looks_at = Looks.REPORT
    depends_on_claims = True
    OPTIONS = LIMIT_OPTIONS

    def __init__(self, options: NumInstancesOptions) -> None:
        self._limit = options.max_instances_per_host

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        limits = hosts.table.metadata("max_instances_per_host")
        limit = (
            self._limit
            if limits is None
            else limits.judged(lambda values: least_integer(values, self._limit), hosts.index)
        )
        mask: Bools = hosts.table.num_instances[hosts.index] < limit
        return mask


PLUGIN = AggregateNumInstancesFilter
