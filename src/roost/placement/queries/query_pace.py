"""The share of time that queries may take."""

from typing import Final, NamedTuple

BURST_SECONDS: Final = 0.02
"""Seconds that queries may take at once after a pause."""

MOST_DEBT_SECONDS: Final = 0.1
"""Seconds that queries wait at most for one that took longer, at a share of 1. Its work is limited: whatever
took more time than this has stopped the process, and the queries after it are not to blame."""

QUIET_SECONDS: Final = 1.0
"""Seconds without a write after which no writes are expected, and a query may delay one for longer."""

GRACE_SECONDS: Final = 0.02
"""Seconds after a write in which queries still leave time to writes: a client that has its answer may be
about to send its next write."""

QUIET_SHARE: Final = 0.9
"""The share of queries while no write is under way. The rest is for the first write, which would else wait
for all queries that arrived before it."""


class QueryPace(NamedTuple):
    """A token bucket of seconds. All times are of one monotonic clock.

    ``saved``: seconds that queries may take at ``at``, less than 0 after a query that took longer, and at
    least minus `MOST_DEBT_SECONDS`. Each second adds as much as their share is then.
    """

    saved: float = BURST_SECONDS
    at: float = 0.0

    def wait(self, now: float, share: float) -> float:
        """The seconds until the next query may start; 0 if it may start now."""
        return max(0.0, -self._saved(now, share) / share)

    def spent(self, now: float, seconds: float, share: float) -> "QueryPace":
        """The pacing after a query that took ``seconds`` and ended at ``now``."""
        return QueryPace(max(self._saved(now, share) - seconds, -MOST_DEBT_SECONDS), now)

    def _saved(self, now: float, share: float) -> float:
        return min(BURST_SECONDS, self.saved + (now - self.at) * share)


def writes_arrive(now: float, last_write: float) -> bool:
    """Whether writes are to be expected, the last of which was at ``last_write``."""
    return now - last_write < QUIET_SECONDS


def writer_busy(now: float, last_write: float, waiting: int) -> bool:
    """Whether queries must share the time with writes: ``waiting`` ones, or one that may follow."""
    return waiting > 0 or now - last_write < GRACE_SECONDS
