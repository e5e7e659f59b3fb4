"""Hosts by the metrics that they report, such as temperature or power."""

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Scope
from roost.scheduler.question import Question


class Metrics:
    """The sum of ratio × metric over the option ``metrics_weight_setting``. A host that lacks one of the
    metrics weighs ``weight_of_unavailable``."""

    name = "metrics"
    multiplier_key = "metrics_weight_multiplier"
    default_multiplier = 1.0
    scope = Scope.REPORT

    def raw(self, hosts: HostView, question: Question) -> Float64 | None:
        ratios = question.options.metrics_weights
        if not ratios:
            return None
        total = np.zeros(len(hosts))
        for metric, ratio in ratios.items():
            total += ratio * hosts.table.metric(metric)[hosts.index]
        return np.where(np.isnan(total), question.options.weight_of_unavailable, total)


PLUGIN = Metrics
