"""Options of the queries to placement, under Nova's names and in Nova's sections."""

from roost.process.options import OptionStruct, option
from roost.scheduler.request.demand.numa_groups import NumaModel


class RequestFilterOptions(OptionStruct, frozen=True, group="scheduler"):
    """The request filters to apply, and the most candidates to ask for."""

    limit_tenants_to_placement_aggregate: bool = option(
        False,
        help="A project that has aggregates of its own gets only hosts in these. Their metadata has the "
        "project's id under filter_tenant_id or a key that begins so.",
    )
    placement_aggregate_required_for_tenants: bool = option(
        False,
        help="If limit_tenants_to_placement_aggregate is true, a project without aggregates of its own "
        "gets no hosts.",
    )
    query_placement_for_image_type_support: bool = option(
        False,
        help="A request gets only hosts that have the trait of its image's disk format, such as "
        "COMPUTE_IMAGE_TYPE_QCOW2, unless its root disk is a volume.",
    )
    enable_isolated_aggregate_filtering: bool = option(
        False,
        help="Hosts in an aggregate with metadata trait:NAME=required are only for requests that "
        "require this trait.",
    )
    image_metadata_prefilter: bool = option(
        False,
        help="A request gets only hosts that have the traits of its image's properties, such as "
        "COMPUTE_STORAGE_BUS_VIRTIO for hw_disk_bus=virtio.",
    )
    query_placement_for_routed_network_aggregates: bool = option(
        False, help="A request gets only hosts in the aggregates of the segments of its routed networks."
    )
    numa_model: NumaModel = option(
        "objects",
        help="How the NUMA nodes of hosts are described. objects: in the reports of nodes, which "
        "NUMATopologyFilter reads. trees: as child providers with the trait HW_NUMA_ROOT; placement is "
        "asked for each NUMA node of a request, and processors and memory of requests without NUMA "
        "nodes may be split among providers of one host. both: on some hosts in one way, on some in "
        "the other.",
    )
    max_placement_results: int = option(
        0,
        min=0,
        help="A placement service over HTTP is asked for this many candidates at most, 0 for all. All "
        "are asked for if the request has a server group, a hint same_host or different_host, or a host "
        "with several nodes.",
    )
    max_paged_placement_results: int = option(
        0,
        min=0,
        help="Where too few hosts among the first max_placement_results candidates pass the filters, "
        "twice as many candidates are read, and so on, up to this many. 0: until there are no more.",
    )


class Workarounds(OptionStruct, frozen=True, group="workarounds"):
    """Behaviour that can be switched off."""

    disable_fallback_pcpu_query: bool = option(
        False,
        help="Requests for dedicated processors get only hosts that offer PCPU. Otherwise hosts that "
        "offer as many VCPU serve as well.",
    )
