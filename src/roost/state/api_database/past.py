"""Past instances: facts of instances of which nothing is left, and claims that may be made after their end.

The facts are kept for as long as histories are.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.tables import (
    build_requests,
    instance_deletions,
    instance_mappings,
    late_claims,
    past_mappings,
)
from roost.storage import in_batches, insert_missing, one_of, transaction

PRUNED_AT_ONCE = 1000
"""Past mappings that one transaction removes at most."""

LOOKS = 90
"""Looks at a noted instance before it is forgotten: half an hour. No claim is under way for longer, unless
the conductor that asks for it goes on, and then it notes the instance anew."""

AT_ONCE = 500
"""Noted instances that one transaction reads at most."""


class AcceptedDeletion(msgspec.Struct, frozen=True):
    """A deletion that was accepted at ``at``, in seconds since the epoch. ``by``: the requester; None without
    one, or if an earlier version accepted it."""

    at: float
    by: Requester | None


class KnownInstance(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a present or past instance in the API database.

    ``cell`` is None if it is in no cell yet, or never was in one. Times are in seconds since the epoch;
    ``accepted_at`` is None for instances of earlier versions, ``ended_at`` while something of it is left.
    """

    uuid: str
    cell: str | None
    request_id: str
    project_id: str
    user_id: str
    accepted_at: float | None
    deletion: AcceptedDeletion | None = None
    ended_at: float | None = None


@transaction
def find_known(connection: Connection, uuid: str) -> KnownInstance | None:
    """Return the facts of an instance, None if it is unknown."""
    for query in (_PRESENT, _PAST):
        row = connection.execute(query, {"of": uuid}).one_or_none()
        if row is not None:
            return _known(row)
    return None


def columns_of(by: Requester | None) -> dict[str, str | None]:
    """Return the values of the columns of a deletion's requester."""
    if by is None:
        return dict.fromkeys(("by_user", "by_project", "by_request"))
    return {"by_user": by.user_id, "by_project": by.project_id, "by_request": by.request_id}


def keep_past(connection: Connection, uuids: Sequence[str], at: float) -> None:
    """Keep the facts of deleted instances that are forgotten at ``at``, in the same transaction.

    Raises:
        ConflictRolledBack: another transaction has forgotten one of them meanwhile: the work must run again.
    """
    rows = [{**row._asdict(), "ended_at": at} for row in connection.execute(_DELETED, {"uuids": uuids})]
    if rows:
        # A database that was taken back to an earlier time forgets an instance twice.
        connection.execute(_PRUNE, {"uuids": [row["instance_uuid"] for row in rows]})
        insert_missing(connection, _KEEP, rows)


@transaction
def requesters_of_deletions(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Requester]:
    """Return the requesters of the deletions of instances, as far as known: uuid -> requester."""
    found: dict[str, Requester] = {}
    for some in in_batches(uuids):
        for query in (_WHO_PAST, _WHO):
            for row in connection.execute(query, {"uuids": some}):
                if (by := _requester(row)) is not None:
                    found[row.instance_uuid] = by
    return found


@transaction
def find_past(connection: Connection, uuids: tuple[str, ...]) -> frozenset[str]:
    """Return which of some instances are past: their end is known and not yet forgotten."""
    return frozenset(
        uuid for some in in_batches(uuids) for uuid in connection.execute(_KNOWN, {"uuids": some}).scalars()
    )


@transaction
def prune_past_mappings(connection: Connection, older_than: float) -> int:
    """Remove the facts of instances that ended before ``older_than`` (seconds since the epoch).

    Returns their number; if it is `PRUNED_AT_ONCE` there may be more.
    """
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    if old:
        connection.execute(_PRUNE, {"uuids": old})
    return len(old)


_OF_MAPPING = tuple(
    instance_mappings.c[name]
    for name in ("instance_uuid", "cell", "request_id", "project_id", "user_id", "accepted_at")
)
_OF_DELETION = (
    instance_deletions.c.at.label("deleted_at"),
    *(instance_deletions.c[name] for name in ("by_user", "by_project", "by_request")),
)
_SAME = instance_deletions.c.instance_uuid == instance_mappings.c.instance_uuid
_PRESENT = (
    sa.select(*_OF_MAPPING, *_OF_DELETION, sa.null().label("ended_at"))
    .outerjoin(instance_deletions, _SAME)
    .where(instance_mappings.c.instance_uuid == sa.bindparam("of"))
)
_KNOWN = sa.select(past_mappings.c.instance_uuid).where(one_of(past_mappings.c.instance_uuid, "uuids"))
_PAST = sa.select(past_mappings).where(past_mappings.c.instance_uuid == sa.bindparam("of"))
_DELETED = (
    sa.select(*_OF_MAPPING, *_OF_DELETION)
    .join(instance_deletions, _SAME)
    .where(one_of(instance_mappings.c.instance_uuid, "uuids"))
    .order_by(instance_mappings.c.instance_uuid)
    .with_for_update()
)
_WHO, _WHO_PAST = (
    sa.select(*(table.c[name] for name in ("instance_uuid", "by_user", "by_project", "by_request"))).where(
        one_of(table.c.instance_uuid, "uuids")
    )
    for table in (instance_deletions, past_mappings)
)
_KEEP = sa.insert(past_mappings)
_OLD = (
    sa.select(past_mappings.c.instance_uuid)
    .where(past_mappings.c.ended_at < sa.bindparam("before"))
    .order_by(past_mappings.c.ended_at)
    .limit(PRUNED_AT_ONCE)
)
_PRUNE = sa.delete(past_mappings).where(one_of(past_mappings.c.instance_uuid, "uuids"))


def _requester(row: Any) -> Requester | None:
    return None if row.by_user is None else Requester(row.by_user, row.by_project or "", row.by_request or "")


def _known(row: Any) -> KnownInstance:
    by = _requester(row)
    return KnownInstance(
        uuid=row.instance_uuid,
        cell=row.cell,
        request_id=row.request_id,
        project_id=row.project_id,
        user_id=row.user_id,
        accepted_at=row.accepted_at,
        deletion=None if row.deleted_at is None else AcceptedDeletion(row.deleted_at, by),
        ended_at=row.ended_at,
    )


@transaction
def note_late_claims(connection: Connection, uuids: Collection[str]) -> None:
    """Note instances for which a claim may be made, or was made, after their end."""
    for some in in_batches(uuids):
        connection.execute(_FORGET, {"some": some})
        insert_missing(connection, _INSERT, [{"instance_uuid": uuid, "looks": 0} for uuid in some])


@transaction
def noted_instances_after(connection: Connection, after: str = "") -> dict[str, str | None]:
    """Return noted instances after a uuid whose requests are finished, with their cells, in order of uuids.

    The cell is None for those that have ended as far as the API database knows: in cell0, or forgotten.
    """
    rows = connection.execute(_NOTED, {"after": after})
    return {uuid: None if cell == CELL0 else cell for uuid, cell in rows}


@transaction
def find_noted(connection: Connection, uuids: frozenset[str]) -> frozenset[str]:
    """Return which of some instances are noted, in any state."""
    column = late_claims.c.instance_uuid
    return frozenset(
        uuid
        for some in in_batches(uuids)
        for uuid in connection.execute(sa.select(column).where(column.in_(some))).scalars()
    )


@transaction
def count_look(connection: Connection) -> None:
    """Count a look at each noted instance. Instances with enough looks are forgotten."""
    connection.execute(sa.update(late_claims).values(looks=late_claims.c.looks + 1))
    connection.execute(sa.delete(late_claims).where(late_claims.c.looks >= LOOKS))


_INSERT = sa.insert(late_claims)
_FORGET = sa.delete(late_claims).where(one_of(late_claims.c.instance_uuid, "some"))

# A conductor that works on the request frees or replaces the claims that it finds.
_NOTED = (
    sa.select(late_claims.c.instance_uuid, instance_mappings.c.cell)
    .outerjoin(instance_mappings, instance_mappings.c.instance_uuid == late_claims.c.instance_uuid)
    .outerjoin(build_requests, build_requests.c.request_id == instance_mappings.c.request_id)
    .where(
        late_claims.c.instance_uuid > sa.bindparam("after"),
        # An instance in no cell is being deleted, which frees its claim.
        instance_mappings.c.instance_uuid.is_(None) | instance_mappings.c.cell.is_not(None),
        build_requests.c.request_id.is_(None),
    )
    .order_by(late_claims.c.instance_uuid)
    .limit(AT_ONCE)
)
