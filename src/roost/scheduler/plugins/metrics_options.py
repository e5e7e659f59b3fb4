"""The options of section ``metrics``, which the metrics filter and the metrics weigher read."""

from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.plugin_options import check_ratios

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
