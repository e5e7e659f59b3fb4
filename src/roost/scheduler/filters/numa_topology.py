"""Hosts that fit the NUMA topology of a request: none yet, so that no instance is where it does not fit."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question

UNSUPPORTED: Final = (
    "NUMA topologies of hosts are not fitted: requests for NUMA nodes, page sizes, or dedicated or mixed "
    "CPUs find no host. Without the filter they are placed by the totals of each host"
)

_EXTRA_SPECS = ("hw:numa_nodes", "hw:mem_page_size")
_PROPERTIES = ("hw_numa_nodes", "hw_mem_page_size")
_PINNED = ("dedicated", "mixed")


class NUMATopologyFilter:
    """Excludes every host if the request has a NUMA topology: NUMA nodes, a page size, or a CPU policy
    ``dedicated`` or ``mixed`` in flavor or image."""

    name = "NUMATopologyFilter"
    looks_at = Looks.NOTHING
    unsupported = UNSUPPORTED

    def key(self, question: Question) -> Hashable | None:
        specs, properties = question.spec.flavor.extra_specs, question.spec.image_properties
        wanted = (
            any(key in specs for key in _EXTRA_SPECS)
            or any(key in properties for key in _PROPERTIES)
            or specs.get("hw:cpu_policy") in _PINNED
            or properties.get("hw_cpu_policy") in _PINNED
        )
        return True if wanted else None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        return None if self.key(question) is None else np.zeros(len(hosts), dtype=np.bool_)


PLUGIN = NUMATopologyFilter
