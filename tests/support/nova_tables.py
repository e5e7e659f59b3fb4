"""Node tables of the clouds of `support.nova_requests`."""

from roost.model.aggregate import HostAggregate
from roost.scheduler.nodes.table import NodeTable
from support.clouds import InAggregates
from support.clouds import table_of as table_of_reports
from support.nova_requests import Cloud


def table_of(cloud: Cloud) -> NodeTable:
    """A node table of a cloud. Every node is in all aggregates: queries depend on the aggregates alone."""
    aggregates = tuple(
        HostAggregate(each["uuid"], each["uuid"], each["metadata"]) for each in cloud.aggregates
    )
    return table_of_reports(
        InAggregates(
            node=each["node"],
            host=each["host"],
            nodename=each["nodename"],
            cell=each["cell"],
            last_seen=0.0,
            service_version=cloud.service_version,
            aggregates=aggregates,
        )
        for each in cloud.nodes
    )
