"""The last heartbeat of each compute service, and cheap updates of the services that are alive."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from roost.fleet.columns import Bools, Float64, grown


class Heartbeats:
    """The compute services that are alive, by the time of their last heartbeat.

    ``last_seen``: float64 seconds since the epoch by service number; it may be longer than needed.

    A result of `look` holds until the first service that it found alive is too old, or until the clock goes
    back so far that a service found dead is not. New heartbeats do not end it. So on a large fleet all
    services are compared once in half a minute, not with every decision.
    ``changed`` is called for each service that dies or revives, with its number and whether it is alive.
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
        """Set the last heartbeat of a service."""
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
        """Return whether a service is alive, by the last call of `look` or `put`."""
        return service < self._n and bool(self._alive[service])

    def forget(self, service: int) -> None:
        """Drop a service without nodes; its number may be given to another one."""
        self.last_seen[service] = -math.inf
        self._alive[service] = False

    def hold(self) -> None:
        """Keep each service as it is until `put` says otherwise, whatever the time."""
        self.last_seen[: self._n] = np.where(self._alive[: self._n], math.inf, -math.inf)
        self._eldest, self._latest = math.inf, -math.inf

    def silent(self) -> Iterator[tuple[int, float]]:
        """Yield each service that is down and was ever seen, with its last heartbeat."""
        seen = self.last_seen[: self._n]
        for service in np.flatnonzero(~self._alive[: self._n] & (seen > -math.inf)).tolist():
            yield service, seen.item(service)

    def look(self, oldest: float) -> None:
        """Mark the services seen at ``oldest`` or later as alive, all others as dead; report the changes."""
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
