"""Hosts with fewer instances that burden the disk than the option allows."""

import msgspec
from oslo_config import cfg

from roost.scheduler.plugins.host_limits import HostLimit
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER, PluginOptions


class IoOpsOptions(msgspec.Struct, frozen=True):
    """``max_io_ops_per_host``: a host with so many I/O operations gets no further instance."""

    max_io_ops_per_host: int = 8


LIMIT_OPTIONS = PluginOptions(
    FILTER_SCHEDULER,
    (
        cfg.IntOpt(
            "max_io_ops_per_host",
            default=8,
            min=0,
            help="IoOpsFilter passes hosts with fewer instances that burden the disk.",
        ),
    ),
    IoOpsOptions,
)


class IoOpsFilter(HostLimit):
    """Fewer than ``max_io_ops_per_host`` instances that burden the disk, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "IoOpsFilter"
    column = "num_io_ops"
    limit = "max_io_ops_per_host"
    OPTIONS = LIMIT_OPTIONS


PLUGIN = IoOpsFilter
