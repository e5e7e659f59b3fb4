"""The scheduler's options, under Nova's names where Nova has them (group ``filter_scheduler``)."""

import math
from collections.abc import Mapping

import msgspec
from oslo_config import cfg

from roost.scheduler.errors import BadOptions

GROUP = "filter_scheduler"

DEFAULT_FILTERS = (
    "compute_up",
    "availability_zone",
    "aggregate_extra_specs",
    "server_group_anti_affinity",
    "server_group_affinity",
)
DEFAULT_WEIGHERS = ("ram", "cpu", "disk", "metrics", "build_failure")


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler can be told.

    ``host_subset_size``: pick at random among so many of the best hosts. ``service_down_time``: seconds
    without a heartbeat after which a host is down. ``metrics_weights``: ratio of each metric by name.
    ``metrics_required``: a host that does not report one of them fails the request. ``multipliers``: of
    weighers, by weigher name; a weigher without one has its own default.
    """

    filters: tuple[str, ...] = DEFAULT_FILTERS
    weighers: tuple[str, ...] = DEFAULT_WEIGHERS
    host_subset_size: int = 1
    service_down_time: float = 60.0
    default_availability_zone: str = "nova"
    multipliers: dict[str, float] = {}
    metrics_weights: dict[str, float] = {}
    metrics_required: bool = True
    weight_of_unavailable: float = -10000.0


OPTIONS = [
    cfg.ListOpt(
        "enabled_filters",
        default=list(DEFAULT_FILTERS),
        help="These filters are applied to the hosts, in this order.",
    ),
    cfg.ListOpt(
        "enabled_weighers",
        default=list(DEFAULT_WEIGHERS),
        help="These weighers order the hosts that pass the filters.",
    ),
    cfg.IntOpt(
        "host_subset_size",
        default=1,
        min=1,
        help="The host is drawn at random from this many of the best hosts.",
    ),
    cfg.FloatOpt(
        "service_down_time",
        default=60.0,
        min=0.0,
        help="A host is down if its agent has not reported for this many seconds.",
    ),
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        help="Hosts without an availability zone are in this one.",
    ),
    cfg.DictOpt(
        "weight_multipliers",
        default={},
        help="The numbers of the named weighers are multiplied by these, as in ram:2.0,cpu:0.5.",
    ),
    cfg.DictOpt(
        "metrics_weight_setting",
        default={},
        help="The weigher metrics adds up the named metrics, each times its ratio, as in temperature:-1.0.",
    ),
    cfg.BoolOpt(
        "metrics_required",
        default=True,
        help="A request fails if a host does not report a metric of metrics_weight_setting.",
    ),
    cfg.FloatOpt(
        "weight_of_unavailable",
        default=-10000.0,
        help="A host that does not report a metric gets this weight if metrics_required is false.",
    ),
]


def options_from(conf: cfg.ConfigOpts) -> SchedulerOptions:
    """The options as a configuration has them. Raises `BadOptions`."""
    conf.register_opts(OPTIONS, group=GROUP)
    group = conf[GROUP]
    try:
        return SchedulerOptions(
            filters=tuple(group.enabled_filters),
            weighers=tuple(group.enabled_weighers),
            host_subset_size=group.host_subset_size,
            service_down_time=group.service_down_time,
            default_availability_zone=group.default_availability_zone,
            multipliers=_numbers("weight_multipliers", group.weight_multipliers),
            metrics_weights=_numbers("metrics_weight_setting", group.metrics_weight_setting),
            metrics_required=group.metrics_required,
            weight_of_unavailable=_number("weight_of_unavailable", group.weight_of_unavailable),
        )
    except (cfg.ConfigFileValueError, ValueError) as error:
        raise BadOptions(f"options [{GROUP}]: {error}") from error


def _numbers(option: str, values: Mapping[str, str]) -> dict[str, float]:
    return {name: _number(f"{option}, {name}", value) for name, value in values.items()}


def _number(what: str, value: str | float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what}: {value!r} is not a number to weigh with")
    return number
