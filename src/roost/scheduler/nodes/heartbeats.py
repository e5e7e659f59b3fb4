"""Which compute services were seen lately, without looking at all of them whenever the clock moves."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from roost.fleet.columns import Bools, Float64, grown


class Heartbeats:
    """When each compute service was seen last, ``last_seen``: float64 seconds since the epoch by service
    number, with room to spare.

    What `look` has found holds until the first of the services that it found alive would be too old, or the
    clock goes back to where one that it found dead would not be. Heartbeats make services younger only, so
    that on a large fleet the services are looked through once in half a minute, not with every decision.
    ``changed`` is called with the number of each service that dies or revives, and whether it is alive.
    """

    def __init__(self, changed: Callable[[int, bool], None]) -> None:
        self.last_seen: Float64 = np.zeros(0, dtype=np.float64)
        self._changed = changed
        self._alive: Bools = np.zeros(0, dtype=np.bool_)
        self._n = 0
        self._oldest = -math.inf
        # All that are alive were seen at `_eldest` or after it, all others at `_latest` or before.
        self._eldest = math.inf
        self._latest = -math.inf

    def put(self, service: int, at: float) -> None:
        """A service was seen."""
        if service >= self._n:
            self._n = service + 1
            self.last_seen = grown(self.last_seen, self._n, -math.inf)
            self._alive = grown(self._alive, self._n, False)
        self.last_seen[service] = at
        alive = at > -math.inf and at >= self._oldest
        if alive:
            self._eldest = min(self._eldest, at)
        else:
            self._latest = max(self._latest, at)
        if alive != self._alive.item(service):
            self._alive[service] = alive
            self._changed(service, alive)

    def is_alive(self, service: int) -> bool:
        """Whether a service is alive, as `look` or `put` found last."""
        return service < self._n and bool(self._alive[service])

    def forget(self, service: int) -> None:
        """A service has no nodes any more; its number may be given to another one."""
        self.last_seen[service] = -math.inf
        self._alive[service] = False

    def hold(self) -> None:
        """Keep each service as it is until `put` says otherwise, whatever the time."""
        self.last_seen[: self._n] = np.where(self._alive[: self._n], math.inf, -math.inf)
        self._eldest, self._latest = math.inf, -math.inf

    def silent(self) -> Iterator[tuple[int, float]]:
        """The services that are down and were ever seen, with when they were seen last."""
        seen = self.last_seen[: self._n]
        for service in np.flatnonzero(~self._alive[: self._n] & (seen > -math.inf)).tolist():
            yield service, seen.item(service)

    def look(self, oldest: float) -> None:
        """Find the services that were seen at ``oldest`` or after it, and tell of those that changed."""
        if not self._latest < oldest <= self._eldest:
            seen = self.last_seen[: self._n]
            alive = (seen >= oldest) & (seen > -math.inf)
            changed = np.flatnonzero(alive != self._alive[: self._n]).tolist()
            self._alive[: self._n] = alive
            self._eldest = float(seen.min(where=alive, initial=math.inf))
            self._latest = float(seen.max(where=~alive, initial=-math.inf))
            for service in changed:
                self._changed(service, alive.item(service))
        self._oldest = oldest
