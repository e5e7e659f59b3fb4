"""The scheduler's options, under Nova's names and in Nova's sections where Nova has them."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from roost.fleet.hardware.pci_aliases import PciAlias, check_aliases, merged_aliases
from roost.model.reasons import MOST_MOVES
from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER
from roost.scheduler.request.accelerator_options import AcceleratorOptions
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


UnreadKeys = Literal["warn", "refuse"]


class KeyOptions(OptionStruct, frozen=True, group="scheduler"):
    """Options for requests with keys that nothing reads.

    ``unread_keys``: the treatment of such a request. ``known_keys``: keys that have a reader which the
    scheduler does not know of; ``*`` at the end stands for any text.
    """

    unread_keys: UnreadKeys = option(
        "warn",
        help="What becomes of a request with an extra spec, an image property or a scheduler hint that "
        "nothing reads as it is configured. warn: it is decided, and the answer and the record say so. "
        "refuse: it is refused. Requests in the form of Nova are always decided.",
    )
    known_keys: list[str] = option(
        [],
        help="Extra specs, image properties and scheduler hints that something reads of which the "
        "scheduler does not know, such as an agent of another make. * at the end stands for any text.",
    )


def _aliases(texts: Sequence[str]) -> dict[str, PciAlias]:
    try:
        return merged_aliases(texts)
    except ValueError as error:
        raise ValueError(f"alias: {error}") from error


class PciOptions(OptionStruct, frozen=True, group="pci"):
    """Options of PCI devices. ``aliases``: PCI aliases by name."""

    aliases: dict[str, PciAlias] = option(
        (),
        name="alias",
        parse=_aliases,
        multi=True,
        help="A name for PCI devices, which flavors ask for by the extra spec "
        "pci_passthrough:alias=NAME:COUNT. A JSON object with name, vendor_id, product_id, device_type "
        "(type-PCI, type-PF or type-VF), numa_policy (required, preferred, legacy or socket), "
        "live_migratable, resource_class and traits. Objects with the same name are alternatives.",
    )
    in_placement: bool = option(
        False,
        group=FILTER_SCHEDULER,
        name="pci_in_placement",
        help="The devices of a flavor's aliases are asked of placement too. For hosts that report PCI "
        "devices as resource providers.",
    )

    def __post_init__(self) -> None:
        try:
            check_aliases(self.aliases, in_placement=self.in_placement)
        except ValueError as error:
            raise ValueError(f"alias: {error}") from error


ALL_FILTERS: Final = "nova.scheduler.filters.all_filters"
"""Nova's name for all its filters, in ``available_filters``."""
ALL_WEIGHERS: Final = "nova.scheduler.weights.all_weighers"
"""Nova's name for all its weighers, in ``weight_classes``."""

DEFAULT_FILTERS = (
    "ComputeFilter",
    "AvailabilityZoneFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
DEFAULT_WEIGHERS = (ALL_WEIGHERS,)


class SchedulerOptions(OptionStruct, frozen=True, kw_only=True, group=FILTER_SCHEDULER):
    """The options of a scheduler.

    ``multipliers``: by weigher name; a weigher without one has its own default. ``plugins``: the own options
    of filters and weighers, by plugin name; see `roost.scheduler.plugins.plugin_options`.
    """

    filters: tuple[str, ...] = option(
        DEFAULT_FILTERS,
        name="enabled_filters",
        help="These filters are applied to the hosts, in this order: Nova's names, entry points or import "
        "paths.",
    )
    available_filters: tuple[str, ...] = option(
        (ALL_FILTERS,),
        multi=True,
        help="Import paths of further filter classes, which enabled_filters names by their last word.",
    )
    weighers: tuple[str, ...] = option(
        DEFAULT_WEIGHERS,
        name="weight_classes",
        help="These weighers order the hosts that pass the filters: Nova's names, entry points or import "
        "paths. "
        f"{ALL_WEIGHERS} stands for all that Nova has.",
    )
    host_subset_size: int = option(
        1, min=1, help="The host is drawn at random from this many of the best hosts."
    )
    shuffle_best_same_weighed_hosts: bool = option(
        False,
        help="The host is drawn at random from all hosts that weigh as much as the best one. Otherwise it is "
        "the one with the lowest uuid.",
    )
    service_down_time: float = option(
        60.0,
        deprecated_group="DEFAULT",
        min=0.0,
        help="A host is down if its agent has not reported for this many seconds. Where Nova has it, in "
        "[DEFAULT], it counts too.",
    )
    max_claims_per_instance: int = option(
        100, min=0, help="A run is refused after this many refused claims of one instance. 0: no limit."
    )
    max_candidates_per_host: int = option(
        100,
        min=0,
        help="After this many refused allocation candidates of one host, the next host is tried. 0: no "
        "limit.",
    )
    max_run_seconds: float = option(
        60.0,
        min=0.0,
        help="A run that takes more seconds is refused. A call to placement that has begun is finished "
        "first. 0: no limit.",
    )
    host_list_seconds: float = option(
        0.0,
        min=0.0,
        help="Seconds for which the hosts that a placement service over HTTP offers for a request serve for "
        "other requests that are alike. 0: it is asked for each request.",
    )
    explain_seconds: float = option(
        2.0,
        min=0.0,
        help="A refusal waits for its explanation for this many seconds. Later the explanation goes into the "
        "record alone. 0: refusals are not explained.",
    )
    explain_moves: int = option(
        0,
        min=0,
        max=MOST_MOVES,
        help="An explanation of a refusal also looks for up to this many instances that could move to other "
        "hosts of their cells, so that the request fits. Operators see them. 0: it does not.",
    )
    default_availability_zone: str = option(
        "nova",
        deprecated_group="DEFAULT",
        help="Hosts without an availability zone are in this one. Where Nova has it, in [DEFAULT], it counts "
        "too.",
    )
    multipliers: dict[str, float] = msgspec.field(default_factory=dict)
    plugins: dict[str, Any] = msgspec.field(default_factory=dict)
    pci: PciOptions = PciOptions()
    accelerators: AcceleratorOptions = AcceleratorOptions()
    request_filters: RequestFilterOptions = RequestFilterOptions()
    keys: KeyOptions = KeyOptions()
    workarounds: Workarounds = Workarounds()
