"""The coroutines that renew a process's lease and watch the leases of others.

No clocks are compared. A holder that renews shows it by its counter; an observer that has seen the counter
stand still for long enough acts. Times without observation do not count: a database that is stopped for half
a minute stops all counters, and no holder may be taken for dead then.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

import msgspec

from roost.model.service_version import SERVICE_VERSION
from roost.process.context import Context
from roost.state.leases.lease import Lease
from roost.state.leases.works import AcquireLease, forget_leases, leases_of_kind, renew_lease, vacate_leases
from roost.storage import StorageError

K = TypeVar("K", bound=Hashable)


class Standstill(Generic[K]):
    """The observation of stamps: the time since which each has been seen unchanged.

    ``longest_gap``: seconds between the ends of two looks after which the observation begins anew, because
    the observer or its database was away in between.
    """

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._first: dict[K, tuple[Hashable, float]] = {}
        self._began = self._ended = 0.0

    def look(self, stamps: Mapping[K, Hashable], began: float, ended: float) -> None:
        """Note stamps that were read between two times of the monotonic clock. Absent keys are forgotten."""
        anew = ended - self._ended > self._longest_gap
        before = {} if anew else self._first
        self._first = {}
        for key, stamp in stamps.items():
            known = before.get(key)
            self._first[key] = known if known is not None and known[0] == stamp else (stamp, ended)
        self._began, self._ended = began, ended

    def still(self, key: K) -> float:
        """Return the seconds for which a stamp has certainly not changed; 0 for an unknown key."""
        known = self._first.get(key)
        return 0.0 if known is None else max(self._began - known[1], 0.0)

    def interrupted(self) -> None:
        """Note that a look failed: the observation of all keys begins anew."""
        self._first = {}


FREED = "leases/freed"
"""Topic: leases were taken from dead holders, so their work is free."""


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The times of leases, in seconds.

    A holder renews its lease every ``renew``. An observer looks at all leases every ``look``, and takes a
    lease that has stood still for ``lease``. So the work of a dead process is free after ``lease`` and two
    looks at most. A vacant lease is forgotten after ``forget``.
    """

    renew: float = 2.0
    look: float = 1.0
    lease: float = 8.0
    forget: float = 3600.0


TIMES = LeaseTimes()
"""The times of all leases of processes; tests may use others."""


class Tenure:
    """The lease of one process, which its coroutines share: they own work under the nonce of its holder.

    ``holder``: the nonce, empty while the process holds no lease. ``drawn``: the nonce with which it acquires
    the lease, the same one until it has it, as the answer to the write may be lost; the lease may then be as
    old as the nonce. ``renewals``: how often the process has tried to renew the lease that it holds.
    ``shared``: several processes compete for the lease, and one that does not have it waits.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        host: str,
        times: LeaseTimes = TIMES,
        *,
        shared: bool = False,
    ) -> None:
        self.shared = shared
        self.name = name
        self.kind = kind
        self.host = host
        self.times = times
        self.holder = ""
        self.drawn = ""
        self.epoch = 0
        self.renewals = 0
        self._drawn_at = self._renewed = 0.0

    def draws(self, nonce: str, at: float) -> None:
        """Note the nonce with which the lease will be acquired, from ``at`` of the monotonic clock on."""
        self.drawn, self._drawn_at = nonce, at

    def acquired(self, lease: Lease) -> None:
        """Note that the lease is held, by the last write of this nonce or by an earlier one."""
        self.holder, self.epoch = lease.holder, lease.epoch
        self.drawn = ""
        self.renewals = 0
        self._renewed = self._drawn_at

    def renewed(self, at: float) -> None:
        """Note that a write that began at ``at`` of the monotonic clock has renewed the lease."""
        self._renewed = at

    def lost(self) -> None:
        """Note that others have taken the lease."""
        self.holder = ""

    def holds(self, at: float) -> bool:
        """Return whether new work may begin at ``at`` of the monotonic clock.

        It may if no other process can have taken the lease.
        """
        return bool(self.holder) and at - self._renewed < self.times.lease


async def renew(context: Context, database: str, tenure: Tenure) -> None:
    """Renew the lease of a process; acquire it under a new nonce if it is not held. Raises StorageError."""
    began = context.monotonic()
    if tenure.holder:
        tenure.renewals += 1
        mine = renew_lease(tenure.name, tenure.holder, tenure.epoch, tenure.renewals)
        if await context.write(database, mine):
            return tenure.renewed(began)
        context.log("the lease was taken by another process", {"lease": tenure.name}, "warning")
        tenure.lost()
    is_first = not tenure.drawn
    if is_first:
        tenure.draws(context.draw(), began)
    lease = await context.write(
        database,
        AcquireLease(
            name=tenure.name,
            kind=tenure.kind,
            holder=tenure.drawn,
            host=tenure.host,
            service_version=SERVICE_VERSION,
            now=context.clock(),
        ),
    )
    if lease is None:
        if tenure.shared:
            return None
        context.log("another process has the same lease", {"lease": tenure.name}, "error")
        return None
    tenure.acquired(lease)
    if not is_first:
        # To observers the lease may have stood still since the first attempt to renew it.
        await renew(context, database, tenure)
    return None


async def keep_lease(context: Context, database: str, tenure: Tenure) -> None:
    """Renew a lease for ever. While the database is away, nothing is renewed."""
    failures = 0
    while True:
        try:
            await renew(context, database, tenure)
            failures = 0
        except StorageError as error:
            failures += 1
            if failures == 1:
                values = {"lease": tenure.name, "error": str(error)}
                context.log("a lease cannot be renewed", values, "warning")
        await context.sleep(tenure.times.renew)


async def watch_leases(context: Context, database: str, kind: str, times: LeaseTimes = TIMES) -> None:
    """Take leases of a kind that stand still from their holders, for ever. Wakes `FREED` when it took one."""
    standing: Standstill[str] = Standstill(times.lease / 2)
    while True:
        try:
            await _look(context, database, kind, times, standing)
        except StorageError as error:
            standing.interrupted()
            context.log("leases cannot be watched", {"kind": kind, "error": str(error)}, "debug")
        await context.sleep(times.look)


async def _look(
    context: Context, database: str, kind: str, times: LeaseTimes, standing: Standstill[str]
) -> None:
    began = context.monotonic()
    found = await context.read(database, leases_of_kind(kind))
    standing.look({lease.name: lease.stamp for lease in found}, began, context.monotonic())
    dead = [lease for lease in found if not lease.vacant and standing.still(lease.name) >= times.lease]
    taken = await context.write(database, vacate_leases(dead)) if dead else 0
    if taken:
        for lease in dead:
            values = {"lease": lease.name, "holder": lease.holder, "seconds": times.lease}
            context.log("a process shows no sign of life: its work is free", values, "warning")
        context.wake(FREED)
    old = [lease for lease in found if lease.vacant and standing.still(lease.name) >= times.forget]
    if old:
        await context.write(database, forget_leases(old))
