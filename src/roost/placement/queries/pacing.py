"""The share of time that queries may take while writes arrive."""

from typing import Final, NamedTuple

BURST_SECONDS: Final = 0.02
"""Seconds that queries may take at once after a pause."""

QUIET_SECONDS: Final = 1.0
"""Seconds without a write after which queries need not share."""


class Pacing(NamedTuple):
    """A token bucket of seconds. All times are of one monotonic clock.

    ``share``: seconds that queries gain with each second. ``saved``: seconds that they may take at ``at``,
    less than 0 after a query that took longer.
    """

    share: float
    saved: float = BURST_SECONDS
    at: float = 0.0

    def wait(self, now: float) -> float:
        """The seconds until the next query may start; 0 if it may start now."""
        return max(0.0, -self._saved(now) / self.share)

    def spent(self, now: float, seconds: float) -> "Pacing":
        """The pacing after a query that took ``seconds`` and ended at ``now``."""
        return Pacing(self.share, self._saved(now) - seconds, now)

    def _saved(self, now: float) -> float:
        return min(BURST_SECONDS, self.saved + (now - self.at) * self.share)


def shares(now: float, last_write: float) -> bool:
    """Whether queries must share the time with writes, the last of which arrived at ``last_write``."""
    return now - last_write < QUIET_SECONDS
