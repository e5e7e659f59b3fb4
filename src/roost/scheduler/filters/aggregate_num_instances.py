"""Hosts with fewer instances than their aggregates allow."""

from roost.scheduler.filters.num_instances import NumInstancesFilter


class AggregateNumInstancesFilter(NumInstancesFilter):
    """Fewer instances than the metadata ``max_instances_per_host`` of the host's aggregates says, else than
    the option says, those of this run counted. Source: Nova's filter of this name.
    """

    name = "AggregateNumInstancesFilter"
    of_aggregates = True


PLUGIN = AggregateNumInstancesFilter
