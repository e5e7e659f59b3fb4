"""The compute services of a cell that are up, by the counts of their reports."""

import datetime
from collections.abc import Iterable, Mapping

from roost.nova.database.services import ServiceRow
from roost.state.leases import ObservedLiveness

_NEVER = datetime.datetime.min


class ServiceLiveness:
    """The hosts that are ``up``.

    A service is up while its count of reports is seen to change, by the observer's own monotonic clock. A
    service that is seen for the first time counts as up, unless its last report is ``down_seconds`` older
    than the newest of its cell: then it is down until its count changes. So the scheduler knows from its
    start which hosts died before, and no clocks are compared but those of the cell's conductors, which wrote
    the rows, with each other.
    """

    def __init__(self, down_seconds: float) -> None:
        self._liveness = ObservedLiveness(down_seconds)
        self._down = datetime.timedelta(seconds=down_seconds)
        self._known: dict[str, int] = {}
        self._old: dict[str, int] = {}

    @property
    def up(self) -> frozenset[str]:
        """The hosts whose service is up."""
        return self._liveness.up

    def is_new(self, services: Iterable[ServiceRow]) -> bool:
        """Return whether some service was not observed before: then `look` needs the times of reports."""
        return any(each.host not in self._known for each in services)

    def look(
        self,
        services: Iterable[ServiceRow],
        seen: Mapping[str, datetime.datetime],
        began: float,
        ended: float,
    ) -> None:
        """Observe the services that were read between two times of the monotonic clock, in seconds.

        ``seen``: when each has reported last; only those of new services count, and the newest.
        """
        counts = {each.host: each.reports for each in services}
        newest = max(seen.values(), default=_NEVER)
        self._old = {host: count for host, count in self._old.items() if counts.get(host) == count}
        for host, count in counts.items():
            if host not in self._known and newest - seen.get(host, _NEVER) > self._down:
                self._old[host] = count
        self._known = counts
        stamps = {host: (count,) for host, count in counts.items()}
        self._liveness.look(stamps, self._old.keys(), began, ended)

    def away(self, at: float) -> None:
        """Note that the services cannot be read at ``at``: after a while none of them is up."""
        self._liveness.away(at)
