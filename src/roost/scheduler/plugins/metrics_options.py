"""The options of section ``metrics``, which the metrics filter and the metrics weigher read."""

import msgspec
from oslo_config import cfg

from roost.scheduler.plugins.plugin_options import PluginOptions, check_ratios, ratios_option

METRICS = "metrics"


class MetricsOptions(msgspec.Struct, frozen=True):
    """Options of metrics.

    ``weight_setting``: ratio of each metric by name. ``required``: a host that does not report one of these
    metrics fails the request; otherwise such a host weighs ``weight_of_unavailable``.
    """

    weight_setting: dict[str, float] = {}
    required: bool = True
    weight_of_unavailable: float = -10000.0

    def __post_init__(self) -> None:
        check_ratios("weight_setting", self.weight_setting)
        check_ratios("weight_of_unavailable", {"number": self.weight_of_unavailable})


METRICS_OPTIONS = PluginOptions(
    METRICS,
    (
        ratios_option(
            "weight_setting",
            help="MetricsWeigher adds up the named metrics, each times its ratio, as in temperature=-1.0. "
            "MetricsFilter excludes hosts that do not report one of them.",
        ),
        cfg.BoolOpt(
            "required",
            default=True,
            help="A request fails if a host does not report a metric of weight_setting.",
        ),
        cfg.FloatOpt(
            "weight_of_unavailable",
            default=-10000.0,
            help="A host that does not report a metric gets this weight if required is false.",
        ),
    ),
    MetricsOptions,
)
