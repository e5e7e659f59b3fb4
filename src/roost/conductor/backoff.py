"""The retries of work that failed: the number of attempts, and the pauses between them."""

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential backoff. ``attempts``: how often work is tried in all, unless it is tried for ever.

    The pause after the first failure has ``first_seconds``; each is twice as long as the one before, and
    ``longest_seconds`` at most. The default gives up after about two minutes.
    """

    attempts: int = 8
    first_seconds: float = 1.0
    longest_seconds: float = 60.0

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        # Beyond 2**32 the power is of no interest, and costs.
        return min(self.first_seconds * 2.0 ** min(failures - 1, 32), self.longest_seconds)

    def exhausted(self, failures: int) -> bool:
        """Return whether work that failed so often is to be given up."""
        return failures >= self.attempts


class CarryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of carrying requests.

    ``max_attempts``: hosts tried for an instance, the first included. ``backoff``: how often a request that
    fails is tried, and after which pauses; an outage of a database, of placement or of the scheduler is
    waited out.
    """

    max_attempts: int = 3
    backoff: Backoff = Backoff()
