"""Hosts with fewer instances than the option allows."""

import msgspec
from oslo_config import cfg

from roost.scheduler.plugins.host_limits import HostLimit
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER, PluginOptions


class NumInstancesOptions(msgspec.Struct, frozen=True):
    """``max_instances_per_host``: a host with so many instances gets no further one."""

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


class NumInstancesFilter(HostLimit):
    """Fewer than ``max_instances_per_host`` instances, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "NumInstancesFilter"
    column = "num_instances"
    limit = "max_instances_per_host"
    OPTIONS = LIMIT_OPTIONS


PLUGIN = NumInstancesFilter
