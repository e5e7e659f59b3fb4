"""Hosts with fewer instances than the option allows."""

from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.base_classes import HostLimit
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER


class NumInstancesOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """``max_instances_per_host``: a host with so many instances gets no further one."""

    max_instances_per_host: int = option(
        50, min=1, help="NumInstancesFilter passes hosts with fewer instances."
    )


class NumInstancesFilter(HostLimit):
    """Fewer than ``max_instances_per_host`` instances, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "NumInstancesFilter"
    column = "num_instances"
    limit = "max_instances_per_host"
    OPTIONS = NumInstancesOptions


PLUGIN = NumInstancesFilter
