"""Hosts with fewer instances that burden the disk than the option allows."""

import msgspec
from oslo_config import cfg

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugin_options import FILTER_SCHEDULER, PluginOptions
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question


class IoOpsOptions(msgspec.Struct, frozen=True):
    """``max_io_ops_per_host``: a host with so many gets no further instance."""

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


class IoOpsFilter:
    """Fewer than ``max_io_ops_per_host`` instances that burden the disk, those of this run counted.

    Source: Nova's filter of this name.
    """

    name = "IoOpsFilter"
    looks_at = Looks.REPORT
    depends_on_claims = True
    OPTIONS = LIMIT_OPTIONS

    def __init__(self, options: IoOpsOptions) -> None:
        self._limit = options.max_io_ops_per_host

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        mask: Bools = hosts.table.num_io_ops[hosts.index] < self._limit
        return mask


PLUGIN = IoOpsFilter
