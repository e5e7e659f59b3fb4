"""Weighs hosts by the metrics that they report, such as temperature or power."""

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import CannotWeigh
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import METRICS, MetricsOptions
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.pool.weights import multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class MetricsWeigher:
    """The sum of ratio × metric over the option ``weight_setting`` of section ``metrics``.

    A host that does not report one of the metrics fails the request if the option ``required`` is set.
    Otherwise the host weighs ``weight_of_unavailable``, unless ratio or multiplier is 0: then the metric
    adds nothing. Source: Nova's ``MetricsWeigher``.
    """

    name = "MetricsWeigher"
    multiplier_key = "metrics_weight_multiplier"
    multiplier_option = (METRICS, "weight_multiplier")
    default_multiplier = 1.0
    looks_at = Looks.REPORT
    OPTIONS = MetricsOptions

    def __init__(self, options: MetricsOptions) -> None:
        self._options = options
        self._members = Weigher.of(self)

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        options = self._options
        if not options.weight_setting:
            return None
        multiplier = multiplier_of(hosts, self._members, request)
        total = np.zeros(len(hosts))
        unavailable = np.zeros(len(hosts), dtype=np.bool_)
        for metric, ratio in options.weight_setting.items():
            values = hosts.table.metric(metric)[hosts.index]
            missing = np.isnan(values)
            if missing.any():
                if options.required:
                    host = hosts.table.hosts[hosts.index[missing.argmax()]]
                    raise CannotWeigh(
                        f"host {host} does not report metric {metric!r}, as [metrics] required demands"
                    )
                unavailable |= missing & (np.multiply(ratio, multiplier) != 0.0)
                values = np.where(missing, 0.0, values)
            total += ratio * values
        return np.where(unavailable, options.weight_of_unavailable, total)


PLUGIN = MetricsWeigher
