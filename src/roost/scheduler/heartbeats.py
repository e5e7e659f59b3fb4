"""Which hosts were seen lately, without looking at all of them whenever the clock moves."""

import math

import numpy as np

from roost.fleet.columns import Bools, Float64, grown
from roost.fleet.invalidation_log import InvalidationLog


class Heartbeats:
    """When each host was seen last, ``last_seen``: float64 seconds since the epoch by index, with room to
    spare.

    What `since` has found holds until the first of the hosts that it found alive would be too old, or the
    clock goes back to where one that it found dead would not be. Heartbeats make hosts younger only, so that
    on a large fleet the hosts are looked through once in half a minute, not with every decision. Hosts that
    die or revive go into ``invalidations``.
    """

    def __init__(self, invalidations: InvalidationLog) -> None:
        self.last_seen: Float64 = np.zeros(0, dtype=np.float64)
        self._invalidations = invalidations
        self._alive: Bools = np.zeros(0, dtype=np.bool_)
        self._n = 0
        self._oldest = -math.inf
        # All that are alive were seen at `_eldest` or after it, all others at `_latest` or before.
        self._eldest = math.inf
        self._latest = -math.inf

    def put(self, index: int, at: float) -> None:
        """A host was seen."""
        if index >= self._n:
            self._n = index + 1
            self.last_seen = grown(self.last_seen, self._n, 0.0)
            self._alive = grown(self._alive, self._n, False)
        self.last_seen[index] = at
        alive = at >= self._oldest
        if alive:
            self._eldest = min(self._eldest, at)
        else:
            self._latest = max(self._latest, at)
        if alive != self._alive.item(index):
            self._alive[index] = alive
            self._invalidations.append(index)

    def since(self, oldest: float) -> Bools:
        """Which hosts were seen at ``oldest`` or after it: bool by index, with room to spare."""
        if not self._latest < oldest <= self._eldest:
            seen = self.last_seen[: self._n]
            alive = seen >= oldest
            for index in np.flatnonzero(alive != self._alive[: self._n]).tolist():
                self._invalidations.append(index)
            self._alive[: self._n] = alive
            self._eldest = float(seen.min(where=alive, initial=math.inf))
            self._latest = float(seen.max(where=~alive, initial=-math.inf))
        self._oldest = oldest
        return self._alive
