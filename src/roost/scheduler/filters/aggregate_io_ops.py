"""Hosts with fewer instances that burden the disk than their aggregates allow."""

from roost.scheduler.filters.io_ops import IoOpsFilter


class AggregateIoOpsFilter(IoOpsFilter):
    """Fewer instances that burden the disk than the metadata ``max_io_ops_per_host`` of the host's aggregates
    says, else than the option says, those of this run counted. Source: Nova's filter of this name.
    """

    name = "AggregateIoOpsFilter"
    of_aggregates = True


PLUGIN = AggregateIoOpsFilter
