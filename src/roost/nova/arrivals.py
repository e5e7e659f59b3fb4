"""Instances that have arrived at a node, whose claim still counts because the node's row may be older."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from roost.nova.database.compute_nodes import Stamp

COUNTED_SECONDS = 10.0
"""Seconds after which the row of a node counts an arrived instance even if its stamp has not changed."""


class _Arrival(NamedTuple):
    stamp: Stamp
    at: float


class Arrivals:
    """The claims whose instances have arrived at the node, by instance.

    A compute first writes that an instance is on its host, and then the row of its node, under one lock. So
    the first row with another stamp than one that was read after the arrival counts the instance. A row that
    had it already is found by time.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._first: dict[str, _Arrival] = {}

    def counted(self, instance: str, stamp: Stamp) -> bool:
        """Return whether a row of the node counts an instance that had arrived before the row was read."""
        now = self._monotonic()
        first = self._first.setdefault(instance, _Arrival(stamp, now))
        return stamp != first.stamp or now - first.at >= COUNTED_SECONDS

    def keep(self, instances: Collection[str]) -> None:
        """Forget all but some instances: those whose claims are outstanding."""
        self._first = {each: first for each, first in self._first.items() if each in instances}
