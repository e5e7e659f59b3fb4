"""The hosts or processes that are up, as one observer sees it by its own monotonic clock."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from roost.state.leases.lease import Stamp
from roost.state.leases.tenure import Standstill


class ObservedLiveness:
    """The hosts that are ``up``.

    A host is up while it has a session whose stamp changes, and owes nothing. Its session must be observed to
    stand still for ``down_seconds`` before it is down. So no clock can hide a host, neither that of an agent
    nor the observer's if it is stepped; and times at which the database could not be read do not count.
    """

    def __init__(self, down_seconds: float) -> None:
        self._down_seconds = down_seconds
        self._standing: Standstill[str] = Standstill(down_seconds / 2)
        self._silent: dict[str, Stamp] = {}
        self._away_since: float | None = None
        self.up: frozenset[str] = frozenset()

    def look(
        self, sessions: Mapping[str, Stamp], owing: AbstractSet[str], began: float, ended: float
    ) -> None:
        """Observe the sessions that were read between two times of the monotonic clock, in seconds.

        ``owing``: hosts that are not up, as they owe something, such as acknowledgements of orders.
        """
        self._away_since = None
        self._standing.look(sessions, began, ended)
        # A host that is down stays so until it shows a sign of life, even if the observation begins anew.
        self._silent = {
            host: stamp
            for host, stamp in sessions.items()
            if self._silent.get(host) == stamp or self._standing.still(host) >= self._down_seconds
        }
        self.up = frozenset(sessions.keys() - self._silent.keys() - owing)

    def away(self, at: float) -> None:
        """Note that the database cannot be read at ``at``.

        After a while none of its hosts is up: no instance could be put there.
        """
        self._standing.interrupted()
        if self._away_since is None:
            self._away_since = at
        if at - self._away_since >= self._down_seconds:
            self.up = frozenset()
