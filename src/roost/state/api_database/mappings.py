"""Mappings of instances to cells, from the acceptance of a request until nothing of the instance is left."""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Instance, Requester
from roost.state.api_database.consumers import forget_consumers
from roost.state.api_database.crossings import forget_crossings
from roost.state.api_database.past import columns_of, keep_past, note_late_claims
from roost.state.api_database.server_groups import remove_members
from roost.state.api_database.tables import instance_deletions, instance_mappings
from roost.state.leases import holders
from roost.storage import in_batches, one_of, short_read, transaction

# Statements that each request or deletion needs are built once: building takes longer than executing.
_SOME = one_of(instance_mappings.c.instance_uuid, "some")
_FOUND = sa.select(instance_mappings).where(_SOME)
_LOCKED = _FOUND.order_by(instance_mappings.c.instance_uuid).with_for_update()
_INSERT_DELETIONS = sa.insert(instance_deletions)
_FORGET = tuple(
    sa.delete(table).where(one_of(table.c.instance_uuid, "some"))
    for table in (instance_mappings, instance_deletions)
)

# A mapping that the first owner has written names a cell. The epoch of one that names none is raised when the
# request is taken over.
_OVERTAKEN = sa.select(instance_mappings.c.instance_uuid).where(
    _SOME,
    (instance_mappings.c.epoch > 1) | ((instance_mappings.c.epoch == 1) & instance_mappings.c.cell.is_(None)),
)

ANYWHERE = -1
"""The epoch of a mapping that an earlier version wrote: its instance may be in any cell."""


class InstanceMapping(msgspec.Struct, frozen=True):
    """The mapping of an instance to its cell.

    ``cell`` is None until a host is claimed. ``epoch``: of the request's owner that wrote the mapping last.
    ``deleted``: the deletion of the instance is accepted. ``accepted_at``: when the request was accepted, in
    seconds since the epoch; None where an earlier version wrote the mapping. ``name``: of the instance, None
    without one.
    """

    instance_uuid: str
    cell: str | None
    epoch: int
    request_id: str
    project_id: str
    user_id: str
    deleted: bool
    accepted_at: float | None = None
    name: str | None = None


@short_read
def find_mappings(connection: Connection, uuids: tuple[str, ...]) -> dict[str, InstanceMapping]:
    """Return the mappings of instances by uuid; unknown instances are left out."""
    return _find(connection, uuids)


@transaction
def page_of_mappings(
    connection: Connection,
    *,
    most: int,
    after: str = "",
    request_ids: tuple[str, ...] | None = None,
    project_id: str | None = None,
    cells: tuple[str, ...] | None = None,
    unplaced: bool = False,
    name: str | None = None,
    prefix: str | None = None,
) -> list[InstanceMapping]:
    """Return the first ``most`` mappings of instances after a uuid, in order of uuids.

    ``request_ids`` and ``project_id`` restrict them to some requests and to one project, ``cells`` to some
    cells, ``unplaced`` to instances of no cell, ``name`` to instances of a name, ``prefix`` to uuids that
    begin with it.
    """
    columns = instance_mappings.c
    query = sa.select(instance_mappings).where(columns.instance_uuid > after)
    if request_ids is not None:
        query = query.where(one_of(columns.request_id, "requests"))
    if project_id is not None:
        query = query.where(columns.project_id == project_id)
    if cells is not None:
        query = query.where(columns.cell.in_(cells))
    if unplaced:
        query = query.where(columns.cell.is_(None))
    if name is not None:
        query = query.where(columns.name == name)
    if prefix is not None:
        # "g" follows all characters of a uuid, so that an index finds the range.
        query = query.where(columns.instance_uuid >= prefix, columns.instance_uuid < f"{prefix}g")
    query = query.order_by(columns.instance_uuid).limit(most)
    values = {} if request_ids is None else {"requests": request_ids}
    return [InstanceMapping(*row) for row in connection.execute(query, values)]


# Deletions


class DeleteMapped(msgspec.Struct, frozen=True):
    """Accept the deletion of instances; when it is durable, it will be carried out.

    The instances leave their server groups. Answers the mappings of known instances. ``owner``: the holder of
    the lease of the process that carries the deletions; None: any process may take them. ``by``: the
    requester, None without one.
    """

    uuids: tuple[str, ...]
    at: float
    owner: str | None = None
    by: Requester | None = None

    @property
    def keys(self) -> Collection[str]:
        return self.uuids

    def __call__(self, connection: Connection) -> dict[str, InstanceMapping]:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(
        cls, connection: Connection, works: "Sequence[DeleteMapped]"
    ) -> list[dict[str, InstanceMapping]]:
        found = _find(connection, [uuid for work in works for uuid in work.uuids], lock=True)
        by_work = [{uuid: found[uuid] for uuid in work.uuids if uuid in found} for work in works]
        rows = [
            {"instance_uuid": uuid, "at": work.at, "owner": work.owner, **columns_of(work.by)}
            for work, of_it in zip(works, by_work, strict=True)
            for uuid, mapping in of_it.items()
            if not mapping.deleted
        ]
        if rows:
            new = [str(row["instance_uuid"]) for row in rows]
            for some in in_batches(new):
                connection.execute(_DELETE, {"some": some})
            connection.execute(_INSERT_DELETIONS, rows)
            remove_members(connection, new)
        return [
            {uuid: msgspec.structs.replace(mapping, deleted=True) for uuid, mapping in of_it.items()}
            for of_it in by_work
        ]


_DELETE = sa.update(instance_mappings).where(_SOME).values(deleted=True)


@short_read
def find_free_deletions(connection: Connection, owner: str, most: int) -> list[tuple[str, str | None]]:
    """Return up to ``most`` deletions that have no living owner, or are owned by ``owner`` itself."""
    rows = connection.execute(_FREE, {"me": owner, "most": most})
    return [(row.instance_uuid, row.owner) for row in rows]


_FREE = (
    sa.select(instance_deletions.c.instance_uuid, instance_deletions.c.owner)
    .where(
        instance_deletions.c.owner.is_(None)
        | (instance_deletions.c.owner == sa.bindparam("me"))
        | instance_deletions.c.owner.not_in(holders())
    )
    .limit(sa.bindparam("most"))
)


@transaction
def take_over_deletions(
    connection: Connection, seen: tuple[tuple[str, str | None], ...], owner: str
) -> list[InstanceMapping]:
    """Take deletions over from the owners that were seen. Returns the mappings of the taken ones."""
    taken = []
    for uuid, earlier in seen:
        there = (
            instance_deletions.c.instance_uuid == uuid,
            instance_deletions.c.owner.is_not_distinct_from(earlier),
        )
        update = sa.update(instance_deletions).where(*there).values(owner=owner)
        if connection.execute(update).rowcount:
            taken.append(uuid)
    return list(_find(connection, taken).values())


@transaction
def forget_instances(connection: Connection, uuids: tuple[str, ...], at: float) -> None:
    """Remove the mappings of instances of which nothing is left, and their deletions.

    Their facts are kept for histories. Instances whose requests had earlier owners are noted, and consumers
    that were drawn for them: see
    `roost.conductor.claim_release`.
    """
    for some in in_batches(uuids):
        keep_past(connection, some, at)
        note_late_claims(connection.execute(_OVERTAKEN, {"some": some}).scalars().all())(connection)
        for forget in _FORGET:
            connection.execute(forget, {"some": some})
        forget_crossings(connection, some)
        # A conductor that was stopped while it looked for a host may still claim for one of them.
        note_late_claims(forget_consumers(connection, some))(connection)


# Mappings of earlier versions


@transaction
def mappings_without_project(connection: Connection, most: int, after: str = "") -> list[InstanceMapping]:
    """Return mappings after a uuid that lack the project of the instance, in order of uuids."""
    columns = instance_mappings.c
    query = (
        sa.select(instance_mappings)
        .where(columns.project_id == "", columns.request_id == "", columns.instance_uuid > after)
        .order_by(columns.instance_uuid)
        .limit(most)
    )
    return [InstanceMapping(*row) for row in connection.execute(query)]


@transaction
def fill_in_projects(connection: Connection, instances: Sequence[Instance]) -> None:
    """Write project and user of instances into their mappings, as their cell has them."""
    rows = [
        {"key": each.uuid, "request": each.request_id, "project": each.project_id, "user": each.user_id}
        for each in instances
    ]
    if rows:
        connection.execute(_COMPLETE, rows)


_COMPLETE = (
    sa.update(instance_mappings)
    .where(instance_mappings.c.instance_uuid == sa.bindparam("key"))
    .values(
        request_id=sa.bindparam("request"), project_id=sa.bindparam("project"), user_id=sa.bindparam("user")
    )
)


def _find(connection: Connection, uuids: Collection[str], lock: bool = False) -> dict[str, InstanceMapping]:
    found = {}
    for some in in_batches(uuids):
        rows = connection.execute(_LOCKED if lock else _FOUND, {"some": some})
        found.update({row.instance_uuid: InstanceMapping(*row) for row in rows})
    return found
