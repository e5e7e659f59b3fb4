"""Hosts that report all metrics that hosts are weighed by."""

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import MetricsOptions
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class MetricsFilter:
    """The host reports every metric of the option ``weight_setting`` of section ``metrics``.

    Source: Nova's filter of this name.
    """

    name = "MetricsFilter"
    looks_at = Looks.REPORT
    OPTIONS = MetricsOptions

    def __init__(self, options: MetricsOptions) -> None:
        self._metrics = tuple(options.weight_setting)

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        mask: Bools | None = None
        for metric in self._metrics:
            values = hosts.table.metric(metric)[hosts.index]
            reported: Bools = values == values  # NaN stands for a metric that is not reported
            mask = reported if mask is None else mask & reported
        return mask


PLUGIN = MetricsFilter
