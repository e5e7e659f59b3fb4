"""Publishes the capacity and use of the cloud by resource class and availability zone."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.fleet.utilisation import class_uses, uses_of_groups
from roost.ledger.ledger import Ledger
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import counting

EVERY_SECONDS: Final = 15.0
"""Seconds between two publications."""

ALL: Final = "all"
"""The label value for the sum of all zones, with providers outside of zones included."""

Zones = Callable[[Fleet], Mapping[str, Rows]]
"""Returns the rows of the hosts' roots in each availability zone, by the name of the zone."""


def no_zones(_: Fleet) -> Mapping[str, Rows]:
    """Return no zones: a process with placement alone has none."""
    return {}


class CapacityMetrics:
    """Sets the gauges of capacity and use from the fleet of a ledger, as far as the replica has followed."""

    def __init__(self, ledger: Ledger, zones: Zones = no_zones) -> None:
        self._ledger = ledger
        self._zones = zones
        self._published: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Publish for ever, if the process collects metrics."""
        while True:
            if counting():
                self.publish()
            await asyncio.sleep(EVERY_SECONDS)

    def publish(self) -> None:
        """Set the gauges. Those of a class or zone that is gone become 0."""
        fleet = self._ledger.known()
        amounts = {(use.resource_class, ALL): (use.capacity, use.used) for use in class_uses(fleet)}
        zones = self._zones(fleet)
        group = np.full(fleet.n_rows, -1, dtype=np.int64)
        for number, rows in enumerate(zones.values()):
            group[rows] = number
        for name, (capacity, used) in uses_of_groups(fleet, group, len(zones)).items() if zones else ():
            for number, zone in enumerate(zones):
                if capacity[number] or used[number]:
                    amounts[name, zone] = int(capacity[number]), int(used[number])
        for labels in self._published - amounts.keys():
            amounts[labels] = (0, 0)
        for labels, (units, held) in amounts.items():
            metrics.CAPACITY.labels(*labels).set(units)
            metrics.USED.labels(*labels).set(held)
        self._published = {labels for labels, both in amounts.items() if any(both)}
