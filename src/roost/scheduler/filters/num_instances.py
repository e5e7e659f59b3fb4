"""Hosts with fewer instances than the option allows."""

import msgspec
from oslo_config import cfg

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugin_options import FILTER_SCHEDULER, PluginOptions
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class NumInstancesOptions(msgspec.Struct, frozen=True):
    """``max_instances_per_host``: a host with so many gets no further instance."""

    max_instances_per_host: int = 50


LIMIT_OPTIONS = PluginOptions(
    FILTER_SCHEDULER,
    (
        cfg.IntOpt(
            "max_instances_per_host",
            default=50,
            min=1,
            help="NumInstancesFilter passes hosts with fewer instances.",
        ),
    ),
    NumInstancesOptions,
)


class NumInstancesFilter:
    """Fewer than ``max_instances_per_host`` instances, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "NumInstancesFilter"
    looks_at = Looks.REPORT
    depends_on_claims = True
    OPTIONS = LIMIT_OPTIONS

    def __init__(self, options: NumInstancesOptions) -> None:
        self._limit = options.max_instances_per_host

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        mask: Bools = hosts.table.num_instances[hosts.index] < self._limit
        return mask


PLUGIN = NumInstancesFilter
