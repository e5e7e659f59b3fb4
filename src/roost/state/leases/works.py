"""The transactions on leases."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.leases.lease import VACANT, Lease, lease_of, leases
from roost.storage import in_batches, insert_missing, one_of, short_read, transaction


class AcquireLease(msgspec.Struct, frozen=True, kw_only=True):
    """Become the holder of a lease. Answers the lease, None while another process holds it.

    A lease that is absent or vacant is acquired at once. A held one is acquired only if its row is exactly
    ``seen``, which the caller has observed to stand still. ``now``: seconds since the epoch, for people.
    If this holder has it already, as after a lost answer, nothing changes.

    Raises `ConflictRolledBack` if another process inserts the row at the same time: the work must run again.
    """

    name: str
    kind: str
    holder: str
    host: str
    service_version: int
    now: float
    seen: Lease | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the name of the lease."""
        return (self.name,)

    def __call__(self, connection: Connection) -> Lease | None:
        return self.together(connection, [self])[0]

    @classmethod
    def together(cls, connection: Connection, works: Sequence["AcquireLease"]) -> list[Lease | None]:
        """Acquire several leases: see `roost.storage.batches`."""
        return acquire(connection, works, read_leases(connection, [work.name for work in works], lock=True))

    def acquired(self, there: Lease | None) -> Lease | None:
        """Return the lease after this work; None if another process holds it. ``there``: its row now."""
        if there is not None and there.holder == self.holder:
            return there
        if there is not None and not there.vacant and (self.seen is None or there.stamp != self.seen.stamp):
            return None
        return Lease(
            name=self.name,
            kind=self.kind,
            holder=self.holder,
            epoch=1 if there is None else there.epoch + 1,
            counter=0,
            host=self.host,
            service_version=self.service_version,
            since=self.now,
        )


def acquire(
    connection: Connection, works: Sequence[AcquireLease], present: Mapping[str, Lease]
) -> list[Lease | None]:
    """Acquire several leases. ``present``: the existing ones, whose rows are locked. Raises as one work."""
    results = [work.acquired(present.get(work.name)) for work in works]
    new = [lease for lease in results if lease is not None and lease != present.get(lease.name)]
    made = [msgspec.structs.asdict(lease) for lease in new if lease.name not in present]
    taken = [
        {**msgspec.structs.asdict(lease), "of_name": lease.name} for lease in new if lease.name in present
    ]
    if made:
        insert_missing(connection, sa.insert(leases), made)
    if taken:
        connection.execute(_TAKE, taken)
    return results


_TAKE = (
    sa.update(leases)
    .where(leases.c.name == sa.bindparam("of_name"))
    .values({column.name: sa.bindparam(column.name) for column in leases.c})
)


@transaction
def renew_lease(connection: Connection, name: str, holder: str, epoch: int, number: int) -> bool:
    """Raise the counter of a lease to the number of the renewal, which its holder counts.

    Returns False, and changes nothing, if another process holds it now. A renewal that arrives after a later
    one changes nothing either.

    Why the database does not count: after an asynchronous failover has lost a renewal, the next one would get
    the same number, and to observers the lease would have stood still since the lost one.
    """
    mine = {"key": name, "by": holder, "of": epoch, "number": number}
    return bool(connection.execute(_RENEW, mine).rowcount)


_NUMBER = sa.bindparam("number", type_=sa.BigInteger)
# Statements of the polls are built once: building takes longer than executing.
_RENEW = (
    sa.update(leases)
    .where(
        leases.c.name == sa.bindparam("key"),
        leases.c.holder == sa.bindparam("by"),
        leases.c.epoch == sa.bindparam("of"),
    )
    .values(counter=sa.case((leases.c.counter < _NUMBER, _NUMBER), else_=leases.c.counter))
)
_ALL = sa.select(leases).where(leases.c.kind == sa.bindparam("of")).order_by(leases.c.name)


@transaction
def vacate_leases(connection: Connection, seen: Sequence[Lease]) -> int:
    """Take leases from holders that were seen to stand still. Returns their number.

    A lease whose row has changed since is left alone. The work that the holders owned is free afterwards.
    """
    taken = 0
    for lease in seen:
        vacated = sa.update(leases).where(*_exactly(lease)).values(holder=VACANT, epoch=leases.c.epoch + 1)
        taken += connection.execute(vacated).rowcount
    return taken


@transaction
def vacate_all(connection: Connection, kind: str) -> None:
    """Take all leases of a kind from their holders; only for a process that is the only one, and knows it."""
    connection.execute(sa.delete(leases).where(leases.c.kind == kind))


@transaction
def release_lease(connection: Connection, name: str, holder: str) -> None:
    """Give back a lease at an orderly end: its row is removed, unless another process holds it now."""
    mine = (leases.c.name == name, leases.c.holder == holder)
    connection.execute(sa.delete(leases).where(*mine))


@transaction
def forget_leases(connection: Connection, seen: Sequence[Lease]) -> None:
    """Remove vacant leases whose rows have not changed since they were seen."""
    for lease in seen:
        connection.execute(sa.delete(leases).where(*_exactly(lease), leases.c.holder == VACANT))


@short_read
def leases_of_kind(connection: Connection, kind: str) -> list[Lease]:
    """Return all leases of a kind, in order of names."""
    return [lease_of(row) for row in connection.execute(_ALL, {"of": kind})]


@short_read
def all_leases(connection: Connection) -> list[Lease]:
    """Return the leases of all kinds, in order of names."""
    query = sa.select(leases).order_by(leases.c.name)
    return [lease_of(row) for row in connection.execute(query)]


# Built once: each poll of a host reads its lease.
_NAMED = sa.select(leases).where(one_of(leases.c.name, "names"))
# Transactions that lock the same leases lock them in the same order.
_LOCKED = _NAMED.order_by(leases.c.name).with_for_update()


def read_leases(connection: Connection, names: Iterable[str], *, lock: bool = False) -> dict[str, Lease]:
    """Return the existing leases of some names. ``lock``: lock their rows until the transaction ends."""
    query = _LOCKED if lock else _NAMED
    return {
        row.name: lease_of(row)
        for some in in_batches(names)
        for row in connection.execute(query, {"names": some})
    }


_STAMPS = sa.select(leases.c.name, leases.c.holder, leases.c.epoch, leases.c.counter).where(
    one_of(leases.c.name, "names")
)
_STAMPS_LOCKED = _STAMPS.order_by(leases.c.name).with_for_update()


def read_stamps(
    connection: Connection, names: Iterable[str], *, lock: bool = False
) -> dict[str, tuple[str, int, int]]:
    """Return the stamps of the existing leases of some names. ``lock``: as of `read_leases`."""
    query = _STAMPS_LOCKED if lock else _STAMPS
    return {
        name: (holder, epoch, counter)
        for some in in_batches(names)
        for name, holder, epoch, counter in connection.execute(query, {"names": some})
    }


def _exactly(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the condition that a row is as it was seen."""
    return (
        leases.c.name == lease.name,
        leases.c.holder == lease.holder,
        leases.c.epoch == lease.epoch,
        leases.c.counter == lease.counter,
    )
