"""The options of one filter or weigher: a typed value, read from a section of the configuration."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from oslo_config import cfg, types

from roost.scheduler.errors import BadOptions

FILTER_SCHEDULER = "filter_scheduler"
"""The section of Nova's options of filters and weighers."""


class PluginOptions(NamedTuple):
    """The options that a plugin declares as its class attribute ``OPTIONS``.

    ``group``: the section. ``struct``: a msgspec struct, frozen, with a default for each field; the fields
    have the names of ``options``. The plugin is constructed with one such struct. Several plugins may declare
    the same options.

    Example::

        class Quiet(msgspec.Struct, frozen=True):
            most_decibels: float = 40.0

        class QuietFilter:
            name = "QuietFilter"
            OPTIONS = PluginOptions("quiet_filter", (cfg.FloatOpt("most_decibels", default=40.0),), Quiet)

            def __init__(self, options: Quiet) -> None:
                self._options = options
    """

    group: str
    options: Sequence[cfg.Opt]
    struct: type[msgspec.Struct]

    def read(self, conf: cfg.ConfigOpts) -> msgspec.Struct:
        """Read the options from a configuration.

        Raises:
            BadOptions: a value is invalid, or another plugin declares one of the options differently.
        """
        try:
            conf.register_opts(self.options, group=self.group)
            section = conf[self.group]
            values = {option.dest: section[option.dest] for option in self.options}
            return msgspec.convert(values, self.struct, strict=False)
        except (cfg.ConfigFileValueError, cfg.DuplicateOptError, ValueError) as error:
            raise BadOptions(f"options [{self.group}]: {error}") from error


def ratios_option(name: str, help: str) -> cfg.Opt:
    """Return an option of numbers by name, in Nova's form ``name=1.0, other=-0.5``."""
    return cfg.Opt(name, type=types.Dict(types.Float(), key_value_separator="="), default={}, help=help)


def check_ratios(option: str, ratios: Mapping[str, Any]) -> None:
    """Check that all numbers are finite.

    Raises:
        ValueError: one is not.
    """
    for name, ratio in ratios.items():
        if not -1e300 < ratio < 1e300:
            raise ValueError(f"{option}, {name}: {ratio} is not a number to weigh with")
