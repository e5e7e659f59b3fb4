"""The time for which counters have stood still, by the monotonic clock of the observer.

No clocks are compared. A holder that renews shows it by its counter; an observer that has seen the counter
stand still for long enough acts. Times without observation do not count: a database that is stopped for half
a minute stops all counters, and no holder may be taken for dead then.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Standstill(Generic[K]):
    """The observation of stamps: the time since which each has been seen unchanged.

    ``longest_gap``: seconds between the ends of two looks after which the observation begins anew, because
    the observer or its database was away in between.
    """

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._first: dict[K, tuple[Hashable, float]] = {}
        self._began = self._ended = 0.0

    def look(self, stamps: Mapping[K, Hashable], began: float, ended: float) -> None:
        """Note stamps that were read between two times of the monotonic clock. Absent keys are forgotten."""
        anew = ended - self._ended > self._longest_gap
        before = {} if anew else self._first
        self._first = {}
        for key, stamp in stamps.items():
            known = before.get(key)
            self._first[key] = known if known is not None and known[0] == stamp else (stamp, ended)
        self._began, self._ended = began, ended

    def still(self, key: K) -> float:
        """Return the seconds for which a stamp has certainly not changed; 0 for an unknown key."""
        known = self._first.get(key)
        return 0.0 if known is None else max(self._began - known[1], 0.0)

    def interrupted(self) -> None:
        """Note that a look failed: the observation of all keys begins anew."""
        self._first = {}
