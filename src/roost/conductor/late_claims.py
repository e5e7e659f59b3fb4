"""Claims that are made for an instance after its end.

A conductor asks the scheduler for a claim, and is stopped or killed before it has the answer. Another one
takes its request over and finishes it. The instance cannot be placed, all its builds fail, or its user
deletes it. Then the claim arrives, and its asker may be dead. So an instance for which an earlier owner of
its request may still claim is noted when its request is finished and when it is forgotten, and looked at for
a while. What it holds when it has come to its end is freed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.in_error import InError
from roost.conductor.cell_mappings import CELL0
from roost.conductor.freeing import free_claims
from roost.conductor.tables import API, build_requests, instance_mappings, late_claims
from roost.leases import ReadLeases, Tenure
from roost.machine import Log, Machine, Read, Write
from roost.scheduler.claim_result import one_line
from roost.storage import StorageError, in_batches, insert_missing, one_of

LOOK_SECONDS = 20.0
"""Seconds between two looks."""

LOOKS = 90
"""Looks at an instance before it is forgotten: half an hour. No claim is under way for longer, unless its
asker goes on, which notes the instance anew."""

AT_ONCE = 500
"""Instances that are looked at in one transaction."""


class NoteLateClaims(msgspec.Struct, frozen=True):
    """Note instances for which a claim may arrive, or has arrived, after their end."""

    uuids: tuple[str, ...]

    def __call__(self, connection: Connection) -> None:
        note_late_claims(connection, self.uuids)


def note_late_claims(connection: Connection, uuids: Collection[str]) -> None:
    """As `NoteLateClaims`, in the connection's transaction."""
    for some in in_batches(uuids):
        connection.execute(_FORGET, {"some": some})
        insert_missing(connection, _INSERT, [{"instance_uuid": uuid, "looks": 0} for uuid in some])


class NotedInstances(msgspec.Struct, frozen=True):
    """Answers noted instances after a uuid whose requests are finished, with their cells, in order of uuids.

    The cell is None for those that have ended as far as the API database knows: in cell0, or forgotten.
    """

    after: str = ""

    def __call__(self, connection: Connection) -> dict[str, str | None]:
        rows = connection.execute(_NOTED, {"after": self.after})
        return {uuid: None if cell == CELL0 else cell for uuid, cell in rows}


class NotedLate(msgspec.Struct, frozen=True):
    """Answers those of some instances that are noted, in whatever state they are."""

    uuids: frozenset[str]

    def __call__(self, connection: Connection) -> frozenset[str]:
        column = late_claims.c.instance_uuid
        return frozenset(
            uuid
            for some in in_batches(self.uuids)
            for uuid in connection.execute(sa.select(column).where(column.in_(some))).scalars()
        )


class LookedAt(msgspec.Struct, frozen=True):
    """Count a look at each noted instance. What was looked at often enough is forgotten."""

    def __call__(self, connection: Connection) -> None:
        connection.execute(sa.update(late_claims).values(looks=late_claims.c.looks + 1))
        connection.execute(sa.delete(late_claims).where(late_claims.c.looks >= LOOKS))


_INSERT = sa.insert(late_claims)
_FORGET = sa.delete(late_claims).where(one_of(late_claims.c.instance_uuid, "some"))
# A conductor that works on the request frees or replaces what it finds.
_NOTED = (
    sa.select(late_claims.c.instance_uuid, instance_mappings.c.cell)
    .outerjoin(instance_mappings, instance_mappings.c.instance_uuid == late_claims.c.instance_uuid)
    .outerjoin(build_requests, build_requests.c.request_id == instance_mappings.c.request_id)
    .where(
        late_claims.c.instance_uuid > sa.bindparam("after"),
        # One in no cell is being deleted, and freed then.
        instance_mappings.c.instance_uuid.is_(None) | instance_mappings.c.cell.is_not(None),
        build_requests.c.request_id.is_(None),
    )
    .order_by(late_claims.c.instance_uuid)
    .limit(AT_ONCE)
)


def free_late_claims(tenure: Tenure) -> Machine[None]:
    """Look once at the noted instances, and free what they hold. Raises `StorageError`, and what placement
    raises.

    Of several conductors one looks: that with the first of the leases. It does not matter if two do. A look
    that a cell did not answer does not count.
    """
    leases = yield from Read(API, ReadLeases(tenure.kind)).do()
    first = next((lease for lease in leases if not lease.vacant), None)
    if first is None or first.holder != tenure.holder:
        return
    after, silent = "", False
    while noted := (yield from Read(API, NotedInstances(after)).do()):
        ended = [uuid for uuid, cell in noted.items() if cell is None]
        for cell, uuids in _by_cell(noted).items():
            try:
                ended += yield from Read(f"cell/{cell}", InError(tuple(uuids))).do()
            except StorageError as error:
                silent = True
                values = {"cell": cell, "error": one_line(error)}
                yield from Log("a cell cannot be asked of late claims", values, "debug").do()
        yield from _free(ended)
        after = [*noted][-1]
    if not silent:
        yield from Write(API, LookedAt()).do()


def _by_cell(noted: Mapping[str, str | None]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, cell in noted.items():
        if cell is not None:
            found[cell].append(uuid)
    return found


def _free(ended: Collection[str]) -> Machine[None]:
    outcome = yield from free_claims(ended)
    for uuid, error in outcome.refused.items():
        values = {"instance": uuid, "error": one_line(error)}
        yield from Log("a claim cannot be freed", values, "warning").do()
    for uuid in outcome.freed:
        values = {"instance": uuid}
        yield from Log("a claim that came after the end of its instance is freed", values, "warning").do()
