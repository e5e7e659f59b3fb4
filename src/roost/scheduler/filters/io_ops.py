"""Hosts with fewer instances that burden the disk than the option allows."""

from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.base_classes import HostLimit
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER


class IoOpsOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """``max_io_ops_per_host``: a host with so many I/O operations gets no further instance."""

    max_io_ops_per_host: int = option(
        8, min=0, help="IoOpsFilter passes hosts with fewer instances that burden the disk."
    )


class IoOpsFilter(HostLimit):
    """Fewer than ``max_io_ops_per_host`` instances that burden the disk, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "IoOpsFilter"
    column = "num_io_ops"
    limit = "max_io_ops_per_host"
    OPTIONS = IoOpsOptions


PLUGIN = IoOpsFilter
