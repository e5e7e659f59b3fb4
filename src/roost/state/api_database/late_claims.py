"""The instances for which a claim may still be made after their end."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.tables import build_requests, instance_mappings, late_claims
from roost.storage import in_batches, insert_missing, one_of, transaction

LOOKS = 90
"""Looks at a noted instance before it is forgotten: half an hour. No claim is under way for longer, unless
the conductor that asks for it goes on, and then it notes the instance anew."""


AT_ONCE = 500
"""Instances that one transaction reads at most."""


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
