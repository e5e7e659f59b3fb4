"""The members of Nova's server groups, placed or about to be."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import instance_group_members, instance_groups
from roost.storage import short_read

_MEMBERS = (
    sa.select(instance_group_members.c.instance_uuid)
    .join(instance_groups, instance_groups.c.id == instance_group_members.c.group_id)
    .where(instance_groups.c.uuid == sa.bindparam("group"))
)


@short_read
def read_members(connection: Connection, group: str) -> list[str]:
    """Return the uuids of all members of a server group, of any cell. Deleted instances are none."""
    found = connection.execute(_MEMBERS, {"group": group}).scalars()
    return [member for member in found if member is not None]
