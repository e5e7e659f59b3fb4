"""Hosts with the PCI devices of a request: none yet, so that no instance is where they are missing."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question

UNSUPPORTED: Final = (
    "PCI devices that are not in placement are not matched: flavors with pci_passthrough:alias find no host. "
    "Without the filter they are placed without regard to PCI devices"
)


class PciPassthroughFilter:
    """Excludes every host if the flavor has ``pci_passthrough:alias``. Devices that are resource providers in
    placement are requested with ``resources:CLASS`` instead."""

    name = "PciPassthroughFilter"
    looks_at = Looks.NOTHING
    unsupported = UNSUPPORTED

    def key(self, question: Question) -> Hashable | None:
        return True if question.spec.flavor.extra_specs.get("pci_passthrough:alias") else None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        return None if self.key(question) is None else np.zeros(len(hosts), dtype=np.bool_)


PLUGIN = PciPassthroughFilter
