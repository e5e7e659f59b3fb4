"""The scheduler's options, under Nova's names where Nova has them (group ``filter_scheduler``)."""

from typing import Any, Final

import msgspec

from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.pci_options import PciOptions
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER
from roost.scheduler.request.accelerator_options import AcceleratorOptions
from roost.scheduler.request.key_options import KeyOptions
from roost.scheduler.request.options import (
    RequestFilterOptions,
    Workarounds,
)

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
