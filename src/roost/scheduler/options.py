"""The scheduler's options, under Nova's names where Nova has them (group ``filter_scheduler``)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from oslo_config import cfg

from roost.scheduler.errors import BadOptions
from roost.scheduler.plugins import pci_options
from roost.scheduler.plugins.pci_options import PciOptions, pci_options_from
from roost.scheduler.plugins.plugin_class import WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import (
    ALL_FILTERS,
    ALL_WEIGHERS,
    all_plugin_options,
    built_ins,
    filter_classes,
    weigher_classes,
)
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER
from roost.scheduler.request import accelerator_options
from roost.scheduler.request.accelerator_options import AcceleratorOptions, accelerator_options_from
from roost.scheduler.request.key_options import KEY_OPTIONS, KeyOptions
from roost.scheduler.request.options import (
    REQUEST_FILTER_OPTIONS,
    WORKAROUNDS,
    RequestFilterOptions,
    Workarounds,
)

GROUP = FILTER_SCHEDULER

DEFAULT_FILTERS = (
    "ComputeFilter",
    "AvailabilityZoneFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
DEFAULT_WEIGHERS = (ALL_WEIGHERS,)


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a scheduler.

    ``filters``, ``available_filters`` and ``weighers``: names as in the options ``enabled_filters``,
    ``available_filters`` and ``weight_classes``. ``host_subset_size``: pick at random among so many of the
    best hosts. ``shuffle_best_same_weighed_hosts``: pick at random among all hosts with the same weight as
    the best one. ``service_down_time``: seconds without a heartbeat after which a host is down.
    ``multipliers``: by weigher name; a weigher without one has its own default. ``plugins``: the own options
    of filters and weighers, by plugin name; see `roost.scheduler.plugins.plugin_options`.
    ``max_claims_per_instance``, ``max_candidates_per_host`` and ``max_run_seconds`` bound a run; 0 is no
    bound. ``host_list_seconds``: seconds for which an answer of placement over HTTP serves.
    ``explain_seconds``: seconds for which a refusal waits for its reasons.
    """

    filters: tuple[str, ...] = DEFAULT_FILTERS
    available_filters: tuple[str, ...] = (ALL_FILTERS,)
    weighers: tuple[str, ...] = DEFAULT_WEIGHERS
    host_subset_size: int = 1
    shuffle_best_same_weighed_hosts: bool = False
    service_down_time: float = 60.0
    max_claims_per_instance: int = 100
    max_candidates_per_host: int = 100
    max_run_seconds: float = 60.0
    host_list_seconds: float = 0.0
    explain_seconds: float = 2.0
    default_availability_zone: str = "nova"
    multipliers: dict[str, float] = {}
    plugins: dict[str, Any] = {}
    request_filters: RequestFilterOptions = RequestFilterOptions()
    workarounds: Workarounds = Workarounds()
    pci: PciOptions = PciOptions()
    accelerators: AcceleratorOptions = AcceleratorOptions()
    keys: KeyOptions = KeyOptions()


OPTIONS = [
    cfg.ListOpt(
        "enabled_filters",
        default=list(DEFAULT_FILTERS),
        help="These filters are applied to the hosts, in this order: Nova's names, entry points or import "
        "paths.",
    ),
    cfg.MultiStrOpt(
        "available_filters",
        default=[ALL_FILTERS],
        help="Import paths of further filter classes, which enabled_filters names by their last word.",
    ),
    cfg.ListOpt(
        "weight_classes",
        default=list(DEFAULT_WEIGHERS),
        help="These weighers order the hosts that pass the filters: Nova's names, entry points or import "
        "paths. "
        f"{ALL_WEIGHERS} stands for all that Nova has.",
    ),
    cfg.IntOpt(
        "host_subset_size",
        default=1,
        min=1,
        help="The host is drawn at random from this many of the best hosts.",
    ),
    cfg.BoolOpt(
        "shuffle_best_same_weighed_hosts",
        default=False,
        help="The host is drawn at random from all hosts that weigh as much as the best one. Otherwise it is "
        "the one with the lowest uuid.",
    ),
    cfg.FloatOpt(
        "service_down_time",
        default=60.0,
        deprecated_group="DEFAULT",
        min=0.0,
        help="A host is down if its agent has not reported for this many seconds. Where Nova has it, in "
        "[DEFAULT], it counts too.",
    ),
    cfg.IntOpt(
        "max_claims_per_instance",
        default=100,
        min=0,
        help="A run is refused after this many refused claims of one instance. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_candidates_per_host",
        default=100,
        min=0,
        help="After this many refused allocation candidates of one host, the next host is tried. 0: no "
        "limit.",
    ),
    cfg.FloatOpt(
        "max_run_seconds",
        default=60.0,
        min=0.0,
        help="A run that takes more seconds is refused. A call to placement that has begun is finished "
        "first. 0: no limit.",
    ),
    cfg.FloatOpt(
        "host_list_seconds",
        default=0.0,
        min=0.0,
        help="Seconds for which the hosts that a placement service over HTTP offers for a request serve for "
        "other requests that are alike. 0: it is asked for each request.",
    ),
    cfg.FloatOpt(
        "explain_seconds",
        default=2.0,
        min=0.0,
        help="A refusal waits for its explanation for this many seconds. Later the explanation goes into the "
        "record alone. 0: refusals are not explained.",
    ),
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        deprecated_group="DEFAULT",
        help="Hosts without an availability zone are in this one. Where Nova has it, in [DEFAULT], it counts "
        "too.",
    ),
]


def all_options() -> dict[str, list[cfg.Opt]]:
    """Return the options of the scheduler and of all filters and weighers, by section."""
    options: dict[str, dict[str, cfg.Opt]] = {GROUP: {each.dest: each for each in OPTIONS}}
    for group, some in (*pci_options.OPTIONS.items(), *accelerator_options.OPTIONS.items()):
        options.setdefault(group, {}).update((option.dest, option) for option in some)
    for weigher in built_ins(WEIGHER):
        group, option = multiplier_option(weigher)
        options.setdefault(group, {})[option.dest] = option
    for declared in (REQUEST_FILTER_OPTIONS, KEY_OPTIONS, WORKAROUNDS, *all_plugin_options()):
        options.setdefault(declared.group, {}).update((each.dest, each) for each in declared.options)
    return {group: list(each.values()) for group, each in options.items()}


def multiplier_option(weigher: PluginClass) -> tuple[str, cfg.Opt]:
    """Return the section and the option of a weigher's multiplier."""
    group, name = weigher.multiplier_option
    option = cfg.FloatOpt(
        name,
        default=weigher.default_multiplier,
        min=weigher.least_multiplier,
        help=f"The numbers of {weigher.name} are multiplied by this. The metadata {weigher.multiplier_key} "
        "of an aggregate goes before it.",
    )
    return group, option


def options_from(conf: cfg.ConfigOpts) -> SchedulerOptions:
    """Return the options of a configuration.

    Raises:
        BadOptions: an option has an invalid value.
        UnknownPlugin: there is no filter or weigher of a name.
    """
    conf.register_opts(OPTIONS, group=GROUP)
    group = conf[GROUP]
    try:
        options = SchedulerOptions(
            filters=tuple(group.enabled_filters),
            available_filters=tuple(group.available_filters),
            weighers=tuple(group.weight_classes),
            host_subset_size=group.host_subset_size,
            shuffle_best_same_weighed_hosts=group.shuffle_best_same_weighed_hosts,
            service_down_time=group.service_down_time,
            max_claims_per_instance=group.max_claims_per_instance,
            max_candidates_per_host=group.max_candidates_per_host,
            max_run_seconds=group.max_run_seconds,
            host_list_seconds=group.host_list_seconds,
            explain_seconds=group.explain_seconds,
            default_availability_zone=group.default_availability_zone,
        )
    except (cfg.ConfigFileValueError, ValueError) as error:
        raise BadOptions(f"options [{GROUP}]: {error}") from error
    filters = filter_classes(options.filters, options.available_filters)
    weighers = weigher_classes(options.weighers)
    return msgspec.structs.replace(
        options,
        multipliers=_multipliers(conf, weighers),
        plugins=_own_options(conf, [*filters, *weighers]),
        request_filters=REQUEST_FILTER_OPTIONS.read(conf),
        workarounds=WORKAROUNDS.read(conf),
        pci=pci_options_from(conf),
        accelerators=accelerator_options_from(conf),
        keys=KEY_OPTIONS.read(conf),
    )


def _multipliers(conf: cfg.ConfigOpts, weighers: Sequence[PluginClass]) -> Mapping[str, float]:
    """Return the multipliers that differ from the default of their weigher."""
    multipliers: dict[str, float] = {}
    for weigher in weighers:
        group, option = multiplier_option(weigher)
        try:
            conf.register_opt(option, group=group)
            number = conf[group][option.dest]
        except (cfg.ConfigFileValueError, cfg.DuplicateOptError, ValueError) as error:
            raise BadOptions(f"options [{group}]: {error}") from error
        if not math.isfinite(number):
            raise BadOptions(f"options [{group}]: {option.dest}: {number} is not a number to weigh with")
        if number != weigher.default_multiplier:
            multipliers[weigher.name] = number
    return multipliers


def _own_options(conf: cfg.ConfigOpts, plugins: Sequence[PluginClass]) -> Mapping[str, msgspec.Struct]:
    """Return the own options of plugins that differ from their defaults, by plugin name."""
    own: dict[str, msgspec.Struct] = {}
    for plugin in plugins:
        declared = plugin.options
        if declared is not None and (read := declared.read(conf)) != declared.struct():
            own[plugin.name] = read
    return own
