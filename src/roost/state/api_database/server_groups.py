"""The server groups of the API database, and the instances that were requested for each group."""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.allocation import GroupPolicy
from roost.model.idempotency import KeyedAnswer
from roost.state.api_database.consumers import find_consumers
from roost.state.api_database.kept_answers import Once
from roost.state.api_database.tables import SCHEMA, server_group_members, server_groups
from roost.storage import Database, in_batches, one_of
from roost.web.errors import NotFound

_LEAVE = sa.delete(server_group_members).where(one_of(server_group_members.c.instance_uuid, "some"))


class NoSuchServerGroup(NotFound):
    """No server group has the uuid, or it belongs to a project that the request may not reach."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"no server group {uuid}")


class StoredServerGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A server group, which never changes. Placement and `ServerGroups.members` have its members.

    ``max_server_per_host`` limits ``anti-affinity``, and is 1 for other policies.
    """

    uuid: str
    name: str
    project_id: str
    user_id: str
    policy: GroupPolicy
    max_server_per_host: int = 1


class ServerGroups:
    """The server groups. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database) -> None:
        SCHEMA.prepare(database)
        self._database = database

    async def create(self, group: StoredServerGroup, answer: KeyedAnswer | None = None) -> None:
        """Add a group. ``answer``: stored with the group. Raises `KeyInWork`."""
        row = msgspec.structs.asdict(group)

        def write(connection: Connection) -> None:
            connection.execute(sa.insert(server_groups), row)

        await self._database.write(Once(write, lambda _: answer))

    async def known(self, uuid: str) -> StoredServerGroup | None:
        """Return a group; None if there is none of this uuid."""
        query = sa.select(server_groups).where(server_groups.c.uuid == uuid)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else StoredServerGroup(**row._asdict())

    async def page(self, limit: int, after: str, project_id: str | None) -> list[StoredServerGroup]:
        """Return up to ``limit`` groups after a uuid, of a project or of all, in order of uuids."""
        query = sa.select(server_groups).where(server_groups.c.uuid > after)
        if project_id is not None:
            query = query.where(server_groups.c.project_id == project_id)
        query = query.order_by(server_groups.c.uuid).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [StoredServerGroup(**row._asdict()) for row in rows]

    async def delete(self, uuid: str) -> None:
        """Delete a group. Its members stay where they are. Raises `NoSuchServerGroup`."""

        def write(connection: Connection) -> int:
            return connection.execute(sa.delete(server_groups).where(server_groups.c.uuid == uuid)).rowcount

        if not await self._database.write(write):
            raise NoSuchServerGroup(uuid)

    async def members(self, group: str) -> Sequence[str]:
        """Return the instances that were requested for a group and are not deleted, placed or not.

        An instance becomes a member before the scheduler places it. So the second check of a group at a
        placement service without groups misses no member: see `roost.scheduler.gateways.foreign_groups`.
        """
        query = sa.select(server_group_members.c.instance_uuid).where(
            server_group_members.c.group_uuid == group
        )
        return await self._database.read(lambda connection: sorted(connection.execute(query).scalars()))

    async def consumers(self, group: str) -> Sequence[str]:
        """Return the consumers that may hold something for the members of a group."""
        members = await self.members(group)
        drawn = await self._database.read(find_consumers(tuple(members)))
        return sorted({*members, *drawn})

    async def instances_of(self, consumers: Collection[str]) -> Sequence[str]:
        """Return the instances of consumers."""
        drawn = await self._database.read(find_consumers(tuple(consumers)))
        return sorted({drawn.get(each, each) for each in consumers})


def add_members(connection: Connection, group: str, instances: Collection[str]) -> None:
    """Add instances that are requested for a group."""
    remove_members(connection, instances)
    rows = [{"instance_uuid": uuid, "group_uuid": group} for uuid in instances]
    connection.execute(sa.insert(server_group_members), rows)


def remove_members(connection: Connection, instances: Collection[str]) -> None:
    """Remove instances from their groups."""
    for some in in_batches(instances):
        connection.execute(_LEAVE, {"some": some})
