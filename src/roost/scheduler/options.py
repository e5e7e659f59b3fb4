"""The scheduler's options, under Nova's names where Nova has them (group ``filter_scheduler``)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from oslo_config import cfg

from roost.process.options import OptionStruct, option, options_by_group
from roost.scheduler.errors import BadOptions
from roost.scheduler.plugins.pci_options import PciOptions
from roost.scheduler.plugins.plugin_class import WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import (
    ALL_FILTERS,
    ALL_WEIGHERS,
    all_plugin_options,
    built_ins,
    filter_classes,
    weigher_classes,
)
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER, read_scheduler_struct
from roost.scheduler.request.accelerator_options import AcceleratorOptions
from roost.scheduler.request.key_options import KeyOptions
from roost.scheduler.request.options import (
    RequestFilterOptions,
    Workarounds,
)

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


def all_options() -> dict[str, list[cfg.Opt]]:
    """Return the options of the scheduler and of all filters and weighers, by section."""
    options = {
        group: {each.dest: each for each in own} for group, own in options_by_group(SchedulerOptions).items()
    }
    for weigher in built_ins(WEIGHER):
        group, multiplier = multiplier_option(weigher)
        options.setdefault(group, {})[multiplier.dest] = multiplier
    for declared in all_plugin_options():
        options.setdefault(declared.group, {}).update((each.dest, each) for each in declared.options)
    return {group: list(each.values()) for group, each in options.items()}


def multiplier_option(weigher: PluginClass) -> tuple[str, cfg.Opt]:
    """Return the section and the option of a weigher's multiplier."""
    group, name = weigher.multiplier_option
    multiplier = cfg.FloatOpt(
        name,
        default=weigher.default_multiplier,
        min=weigher.least_multiplier,
        help=f"The numbers of {weigher.name} are multiplied by this. The metadata {weigher.multiplier_key} "
        "of an aggregate goes before it.",
    )
    return group, multiplier


def options_from(conf: cfg.ConfigOpts) -> SchedulerOptions:
    """Return the options of a configuration.

    Raises:
        BadOptions: an option has an invalid value.
        UnknownPlugin: there is no filter or weigher of a name.
    """
    parts: dict[str, type[OptionStruct]] = {
        "pci": PciOptions,
        "accelerators": AcceleratorOptions,
        "request_filters": RequestFilterOptions,
        "keys": KeyOptions,
        "workarounds": Workarounds,
    }
    read = {name: read_scheduler_struct(conf, struct) for name, struct in parts.items()}
    options = read_scheduler_struct(conf, SchedulerOptions, **read)
    filters = filter_classes(options.filters, options.available_filters)
    weighers = weigher_classes(options.weighers)
    return msgspec.structs.replace(
        options, multipliers=_multipliers(conf, weighers), plugins=_own_options(conf, [*filters, *weighers])
    )


def _multipliers(conf: cfg.ConfigOpts, weighers: Sequence[PluginClass]) -> Mapping[str, float]:
    """Return the multipliers that differ from the default of their weigher."""
    multipliers: dict[str, float] = {}
    for weigher in weighers:
        group, multiplier = multiplier_option(weigher)
        try:
            conf.register_opt(multiplier, group=group)
            number = conf[group][multiplier.dest]
        except (cfg.ConfigFileValueError, cfg.DuplicateOptError, ValueError) as error:
            raise BadOptions(f"options [{group}]: {error}") from error
        if not math.isfinite(number):
            raise BadOptions(f"options [{group}]: {multiplier.dest}: {number} is not a number to weigh with")
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
