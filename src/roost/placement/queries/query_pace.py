"""The share of time that queries may take."""

from typing import Final, NamedTuple

BURST_SECONDS: Final = 0.02
"""Seconds that queries may take at once after a pause."""

MOST_DEBT_SECONDS: Final = 0.1
"""Largest debt in seconds: the longest wait, at a share of 1, for an earlier query that took too long.

The work of a query is limited, so a longer time means that the process was stopped, which later queries need
not make up for.
"""

QUIET_SECONDS: Final = 1.0
"""Seconds without a write after which no write is expected, and a query may take longer in the event loop."""

GRACE_SECONDS: Final = 0.02
"""Seconds after a write during which queries still leave time for writes: the client that has its answer may
send its next write."""

QUIET_SHARE: Final = 0.9
"""The share of queries while no write is under way. The rest is for the next write, which would otherwise
wait for all queries that arrived before it."""


class QueryPace(NamedTuple):
    """A token bucket of seconds. All times are of one monotonic clock.

    ``saved``: seconds that queries may take at ``at``, less than 0 after a query that took longer, and at
    least minus `MOST_DEBT_SECONDS`. Each second adds as much as their share is then.
    """

    saved: float = BURST_SECONDS
    at: float = 0.0

    def wait(self, now: float, share: float) -> float:
        """Return the seconds until the next query may start; 0 if it may start now."""
        return max(0.0, -self._saved(now, share) / share)

    def spent(self, now: float, seconds: float, share: float) -> "QueryPace":
        """Return the pace after a query that took ``seconds`` and ended at ``now``."""
        return QueryPace(max(self._saved(now, share) - seconds, -MOST_DEBT_SECONDS), now)

    def _saved(self, now: float, share: float) -> float:
        return min(BURST_SECONDS, self.saved + (now - self.at) * share)


def writes_arrive(now: float, last_write: float) -> bool:
    """Return whether further writes are expected after the one at ``last_write``."""
    return now - last_write < QUIET_SECONDS


def writer_busy(now: float, last_write: float, waiting: int) -> bool:
    """Return whether queries must leave time for writes: for ``waiting`` ones, or one that may follow."""
    return waiting > 0 or now - last_write < GRACE_SECONDS
