"""Hosts with fewer instances that burden the disk than their aggregates allow."""

from roost.fleet.columns import Bools
from roost.scheduler.aggregate_numbers import least_integer
from roost.scheduler.filters.io_ops import LIMIT_OPTIONS, IoOpsOptions
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class AggregateIoOpsFilter:
    """Fewer instances that burden the disk than the metadata ``max_io_ops_per_host`` of the host's
    aggregates says, those of this run counted. Of several aggregates the least number counts; of none, or
    where one is no integer, the option. Source: Nova's filter of this name.
    """

    name = "AggregateIoOpsFilter"
    looks_at = Looks.REPORT
    depends_on_claims = True
    OPTIONS = LIMIT_OPTIONS

    def __init__(self, options: IoOpsOptions) -> None:
        self._limit = options.max_io_ops_per_host

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        limits = hosts.table.metadata("max_io_ops_per_host")
        limit = (
            self._limit
            if limits is None
            else limits.judged(lambda values: least_integer(values, self._limit), hosts.index)
        )
        mask: Bools = hosts.table.num_io_ops[hosts.index] < limit
        return mask


PLUGIN = AggregateIoOpsFilter
