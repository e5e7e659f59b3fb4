"""The silence of each host of a cell, as one conductor observes it by its own monotonic clock."""

from collections.abc import Sequence

from roost.state.leases import Lease, Standstill

LONGEST_GAP = 10.0
"""Seconds between two looks that succeed after which the time between them does not count: the database was
away, or the conductor."""

AWAY_SECONDS = 45.0
"""Seconds without a sign of any host of a cell after which its endpoint is taken for away, and not its hosts.

A host polls at least twice in this time.
"""


class CellSilence:
    """The hosts of a cell, each with the time for which its session was seen to stand still.

    Times in which the cell's database could not be read, the conductor did not look, or no host of the cell
    was heard do not count: the observation begins anew. One look that fails does not end it: what was written
    meanwhile is there at the next one.
    """

    def __init__(self) -> None:
        self._standing: Standstill[str] = Standstill(LONGEST_GAP)
        self._signs: dict[str, tuple[int, int]] = {}
        self._heard_at = 0.0

    def look(self, sessions: Sequence[Lease], began: float, ended: float) -> None:
        """Note the sessions that were read between two times of the monotonic clock."""
        signs = {each.host: sign_of(each) for each in sessions}
        if any(self._signs.get(host) != sign for host, sign in signs.items()):
            self._heard_at = ended
        elif ended - self._heard_at > AWAY_SECONDS:
            self._standing.interrupted()
        self._signs = signs
        self._standing.look(signs, began, ended)

    def seconds(self, host: str) -> float:
        """Return the seconds for which a host has certainly given no sign of life."""
        return self._standing.still(host)


def sign_of(session: Lease) -> tuple[int, int]:
    """Return a value that changes with each sign of life of a host, and not when its session is taken."""
    return session.epoch - session.vacant, session.counter
