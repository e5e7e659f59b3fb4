"""Reads the scheduler's options from a configuration, with those of the enabled filters and weighers."""

import math
from collections.abc import Mapping, Sequence

import msgspec
from oslo_config import cfg

from roost.process.options import OptionStruct, options_by_group
from roost.scheduler.errors import BadOptions
from roost.scheduler.options import (
    KeyOptions,
    PciOptions,
    RequestFilterOptions,
    SchedulerOptions,
    Workarounds,
)
from roost.scheduler.plugins.plugin_class import WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import (
    all_plugin_options,
    built_ins,
    filter_classes,
    weigher_classes,
)
from roost.scheduler.plugins.plugin_options import read_scheduler_struct
from roost.scheduler.request.accelerator_options import AcceleratorOptions


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
