"""The options of one filter or weigher: a typed value, read from a section of the configuration.

Metadata of aggregates may take the place of an option: numbers and words in it are read here too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from oslo_config import cfg

from roost.process.options import OptionStruct, option, options_by_group, options_of_group, read_struct
from roost.scheduler.errors import BadOptions

S = TypeVar("S", bound=OptionStruct)

FILTER_SCHEDULER = "filter_scheduler"
"""The section of Nova's options of filters and weighers."""


class PluginOptions(NamedTuple):
    """The options of a plugin, from its class attribute ``OPTIONS``.

    There a plugin declares an `OptionStruct` whose fields all have defaults, and is constructed with one.
    Several plugins may declare the same. Where options of oslo.config are at hand, a plugin may declare this
    value instead: ``struct`` is a frozen msgspec struct whose fields have the names of ``options``.

    Example::

        class Quiet(OptionStruct, frozen=True, group="quiet_filter"):
            most_decibels: float = option(40.0, min=0.0, help="Hosts that are louder are left out.")

        class QuietFilter:
            name = "QuietFilter"
            OPTIONS = Quiet

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
        if issubclass(self.struct, OptionStruct):
            return read_scheduler_struct(conf, self.struct)
        with _bad_options(self.group):
            conf.register_opts(self.options, group=self.group)
            section = conf[self.group]
            values = {option.dest: section[option.dest] for option in self.options}
            return msgspec.convert(values, self.struct, strict=False)


def read_scheduler_struct(conf: cfg.ConfigOpts, struct: type[S], **given: Any) -> S:
    """Register and read options of the scheduler. ``given``: as in `read_struct`.

    Raises:
        BadOptions: a value is invalid, or a plugin declares one of the options differently.
    """
    with _bad_options(struct.group):
        for group, options in options_by_group(struct).items():
            conf.register_opts(options, group=group)
        return read_struct(conf, struct, **given)


@contextmanager
def _bad_options(group: str) -> Iterator[None]:
    try:
        yield
    except (cfg.ConfigFileValueError, cfg.DuplicateOptError, ValueError) as error:
        raise BadOptions(f"options [{group}]: {error}") from error


def declared_options(plugin: object) -> PluginOptions | None:
    """Return the options that a plugin or its class declares; None if it declares none."""
    declared = getattr(plugin, "OPTIONS", None)
    if isinstance(declared, type) and issubclass(declared, OptionStruct):
        return PluginOptions(declared.group, options_of_group(declared)[declared.group], declared)
    return declared if isinstance(declared, PluginOptions) else None


def check_ratios(option: str, ratios: Mapping[str, Any]) -> None:
    """Check that all numbers are finite.

    Raises:
        ValueError: one is not.
    """
    for name, ratio in ratios.items():
        if not -1e300 < ratio < 1e300:
            raise ValueError(f"{option}, {name}: {ratio} is not a number to weigh with")


def least_integer(values: Sequence[str], configured: int) -> int:
    """Return the least of the aggregates' integers; ``configured`` without any, or if one is no integer.

    Source: ``validate_num_values`` in Nova's ``scheduler/filters/utils.py``.
    """
    try:
        return min(map(int, values), default=configured)
    except ValueError:
        return configured


@lru_cache(maxsize=10_000)
def words(values: tuple[str, ...]) -> frozenset[str]:
    """Return the words in aggregates' values, which separate them by commas."""
    return frozenset(word.strip() for joined in values for word in joined.split(","))


METRICS = "metrics"


class MetricsOptions(OptionStruct, frozen=True, group=METRICS):
    """Options of metrics.

    ``weight_setting``: ratio of each metric by name. ``required``: a host that does not report one of these
    metrics fails the request; otherwise such a host weighs ``weight_of_unavailable``.
    """

    weight_setting: dict[str, float] = option(
        {},
        help="MetricsWeigher adds up the named metrics, each times its ratio, as in temperature=-1.0. "
        "MetricsFilter excludes hosts that do not report one of them.",
    )
    required: bool = option(
        True, help="A request fails if a host does not report a metric of weight_setting."
    )
    weight_of_unavailable: float = option(
        -10000.0, help="A host that does not report a metric gets this weight if required is false."
    )

    def __post_init__(self) -> None:
        check_ratios("weight_setting", self.weight_setting)
        check_ratios("weight_of_unavailable", {"number": self.weight_of_unavailable})
