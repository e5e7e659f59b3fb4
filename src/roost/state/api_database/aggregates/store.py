"""The host aggregates of the API database."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.aggregate import AVAILABILITY_ZONE, Aggregate
from roost.model.idempotency import KeyedAnswer
from roost.model.instance import Requester
from roost.model.text import is_storable
from roost.state.api_database.aggregates.errors import AggregateNotEmpty, NameTaken, NoSuchAggregate
from roost.state.api_database.aggregates.zones import ZoneChange, affected_nodes, zone_changes
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.kept_answers import Once
from roost.state.api_database.tables import (
    SCHEMA,
    deleted_host_aggregates,
    host_aggregate_members,
    host_aggregates,
    host_aggregates_version,
)
from roost.storage import Database, in_batches

_UUID = 36
_ENCODER = msgspec.json.Encoder(order="sorted")
_METADATA = msgspec.json.Decoder(dict[str, str])

Judge = Callable[[Mapping[str, ZoneChange]], None]
"""Function that raises an error if the nodes must not change their availability zone so."""

Answer = Callable[[Aggregate], KeyedAnswer | None]
"""Function that returns the answer to store with a new aggregate, None for none."""


class AggregateCount(NamedTuple):
    """An aggregate without its members, and their number."""

    aggregate: Aggregate
    members: int


class AggregateChanges(NamedTuple):
    """The changed aggregates up to a version, and the uuids of all present aggregates."""

    version: int
    changed: list[Aggregate]
    all: frozenset[str]


class AggregateStore:
    """The aggregates, each change of which has a version. Raises `StorageError` if the database cannot be
    used.

    A transaction that changes an aggregate first raises the common version of all, and so waits for others
    that do the same: two changes never put a node into two zones, and a reader that has seen a version has
    seen all changes before it. ``clock``: seconds since the epoch, for the events.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        SCHEMA.prepare(database)
        self.database = database
        self._clock = clock

    async def page(self, limit: int, after: str = "", name: str | None = None) -> list[AggregateCount]:
        """Return up to ``limit`` aggregates after a uuid, without their members, in order of uuids.

        ``name``: only the aggregate that has it.
        """
        of_this = host_aggregate_members.c.aggregate_uuid == host_aggregates.c.uuid
        counted = sa.select(sa.func.count()).select_from(host_aggregate_members).where(of_this)
        query = (
            sa.select(*host_aggregates.columns, counted.scalar_subquery().label("members"))
            .where(host_aggregates.c.uuid > after)
            .order_by(host_aggregates.c.uuid)
            .limit(limit)
        )
        if name is not None:
            query = query.where(host_aggregates.c.name == name)
        return await self.database.read(
            lambda connection: [
                AggregateCount(_aggregate(row, frozenset()), row.members) for row in connection.execute(query)
            ]
        )

    async def find(self, uuid: str) -> Aggregate:
        """Return an aggregate. Raises `NoSuchAggregate`."""
        return await self.database.read(lambda connection: _find(connection, uuid))

    async def aggregates_of(self, node: str) -> frozenset[str]:
        """Return the aggregates that a node is in now."""
        return await self.database.read(
            lambda connection: frozenset(connection.execute(_AGGREGATES_OF, {"node": node}).scalars())
        )

    async def changes(self, after: int | None = None) -> AggregateChanges | None:
        """Return the changes since a version, None if there are none; without a version, all aggregates."""

        def read(connection: Connection) -> AggregateChanges | None:
            version = read_version(connection)
            return None if version == after else read_changes(connection, version, after)

        return await self.database.read(read)

    async def create(
        self,
        new: Iterable[Aggregate],
        judge: Judge,
        answer: Answer | None = None,
        by: Requester | None = None,
    ) -> list[Aggregate]:
        """Add aggregates, all or none, and return them as they are stored.

        ``answer``: returns the answer to store with the first one. ``by``: the requester.

        Raises:
            NameTaken: an aggregate has the name.
            SeveralZones: a member is in another zone.
        """
        wanted = list(new)

        def write(connection: Connection) -> list[Aggregate]:
            version = next_version(connection)
            made = []
            for each in wanted:
                _check_name(connection, each)
                aggregate = msgspec.structs.replace(each, generation=1)
                nothing = Aggregate(uuid=each.uuid, name=each.name)
                judge(_zone_changes(connection, nothing, aggregate))
                connection.execute(sa.insert(host_aggregates), _row(aggregate, version))
                _change_members(connection, nothing, aggregate)
                made.append(aggregate)
            append_events(connection, [self._told("aggregate_created", each, by) for each in made])
            return made

        return await self.database.write(Once(write, lambda made: answer(made[0]) if answer else None))

    async def change(
        self,
        uuid: str,
        change: Callable[[Aggregate], Aggregate],
        judge: Judge,
        by: Requester | None = None,
    ) -> Aggregate:
        """Change an aggregate and return it. A change of nothing leaves its generation as it is.

        ``change`` returns the new aggregate, without other effects; its errors are passed on. ``by``: the
        requester.

        Raises:
            NoSuchAggregate: there is no such aggregate.
            NameTaken: another aggregate has the new name.
            SeveralZones: a node would be in two zones.
        """

        def write(connection: Connection) -> Aggregate:
            version = next_version(connection)
            old = _find(connection, uuid)
            new = change(old)
            if new == old:
                return old
            new = msgspec.structs.replace(new, generation=old.generation + 1)
            if new.name != old.name:
                _check_name(connection, new)
            judge(_zone_changes(connection, old, new))
            this = host_aggregates.c.uuid == uuid
            connection.execute(sa.update(host_aggregates).where(this).values(_row(new, version)))
            _change_members(connection, old, new)
            append_events(connection, [self._told("aggregate_changed", new, by, _change(old, new))])
            return new

        return await self.database.write(write)

    async def delete(self, uuid: str, by: Requester | None = None) -> None:
        """Delete an aggregate. ``by``: the requester.

        Raises:
            NoSuchAggregate: there is no such aggregate.
            AggregateNotEmpty: it has members.
        """

        def write(connection: Connection) -> None:
            next_version(connection)
            aggregate = _find(connection, uuid)
            members = len(aggregate.members)
            if members:
                raise AggregateNotEmpty(f"aggregate {uuid} has {members} members: remove them first")
            connection.execute(sa.delete(host_aggregates).where(host_aggregates.c.uuid == uuid))
            connection.execute(sa.insert(deleted_host_aggregates), {"uuid": uuid})
            append_events(connection, [self._told("aggregate_deleted", aggregate, by)])

        await self.database.write(write)

    async def deleted(self) -> frozenset[str]:
        """Return the deleted aggregates that have not been forgotten."""
        query = sa.select(deleted_host_aggregates.c.uuid)
        return await self.database.read(lambda connection: frozenset(connection.execute(query).scalars()))

    async def forget(self, deleted: Collection[str]) -> None:
        """Forget deleted aggregates that no provider in placement has any more."""

        def write(connection: Connection) -> None:
            for some in in_batches(deleted):
                gone = deleted_host_aggregates.c.uuid.in_(some)
                connection.execute(sa.delete(deleted_host_aggregates).where(gone))

        await self.database.write(write)

    def _told(
        self, kind: EventKind, aggregate: Aggregate, by: Requester | None, detail: str | None = None
    ) -> CloudEvent:
        return CloudEvent(at=self._clock(), kind=kind, name=aggregate.name, detail=detail, by=by)


_AGGREGATES_OF = sa.select(host_aggregate_members.c.aggregate_uuid).where(
    host_aggregate_members.c.node == sa.bindparam("node")
)


def next_version(connection: Connection) -> int:
    """Return the version of the change that this transaction makes; the next one waits for its end."""
    column = host_aggregates_version.c.version
    connection.execute(sa.update(host_aggregates_version).values(version=column + 1))
    version: int = connection.execute(sa.select(column)).scalar_one()
    return version


def read_version(connection: Connection) -> int:
    """Return the version of the newest change."""
    version: int = connection.execute(sa.select(host_aggregates_version.c.version)).scalar_one()
    return version


def read_changes(connection: Connection, version: int, after: int | None) -> AggregateChanges:
    """Return the aggregates that have changed after a version, up to the newest one, which is ``version``.

    Returns all of them without ``after``, or if that is newer than ``version``: the database was restored to
    an earlier state.
    """
    since = 0 if after is None or after > version else after
    every = frozenset(connection.execute(sa.select(host_aggregates.c.uuid)).scalars())
    newer = sa.select(host_aggregates).where(host_aggregates.c.version > since)
    rows = connection.execute(newer.order_by(host_aggregates.c.uuid)).all()
    return AggregateChanges(version, [_with_members(connection, row) for row in rows], every)


def _change(old: Aggregate, new: Aggregate) -> str:
    """Return the change of an aggregate in words."""
    said = []
    if new.name != old.name:
        said.append(f"was named {old.name}")
    if new.metadata != old.metadata:
        keys = sorted({*old.metadata.items()} ^ {*new.metadata.items()})
        said.append("metadata " + ", ".join(dict.fromkeys(key for key, _ in keys)))
    if joined := len(new.members - old.members):
        said.append(f"{joined} nodes joined")
    if left := len(old.members - new.members):
        said.append(f"{left} nodes left")
    return "; ".join(said)


def _find(connection: Connection, uuid: str) -> Aggregate:
    query = sa.select(host_aggregates).where(host_aggregates.c.uuid == uuid)
    row = connection.execute(query).one_or_none() if is_storable(uuid, _UUID) else None
    if row is None:
        raise NoSuchAggregate(uuid)
    return _with_members(connection, row)


def _with_members(connection: Connection, row: Any) -> Aggregate:
    of_this = host_aggregate_members.c.aggregate_uuid == row.uuid
    members = connection.execute(sa.select(host_aggregate_members.c.node).where(of_this)).scalars()
    return _aggregate(row, frozenset(members))


def _aggregate(row: Any, members: frozenset[str]) -> Aggregate:
    return Aggregate(
        uuid=row.uuid,
        name=row.name,
        # Not row.metadata: rows have an attribute of that name themselves in some versions.
        metadata=_METADATA.decode(row._mapping["metadata"]),
        members=members,
        generation=row.generation,
    )


def _row(aggregate: Aggregate, version: int) -> dict[str, object]:
    return {
        "uuid": aggregate.uuid,
        "name": aggregate.name,
        "metadata": _ENCODER.encode(aggregate.metadata).decode(),
        "generation": aggregate.generation,
        "version": version,
    }


def _check_name(connection: Connection, aggregate: Aggregate) -> None:
    query = sa.select(host_aggregates.c.uuid).where(host_aggregates.c.name == aggregate.name)
    other = connection.execute(query).scalar()
    if other is not None:
        raise NameTaken(f"aggregate {other} has the name {aggregate.name!r}")


def _zone_changes(connection: Connection, old: Aggregate, new: Aggregate) -> dict[str, ZoneChange]:
    """Return `zone_changes`, with the zones that the nodes have from other aggregates."""
    elsewhere: dict[str, str] = {}
    zones = {
        row.uuid: zone
        for row in connection.execute(sa.select(host_aggregates.c.uuid, host_aggregates.c.metadata))
        if (zone := _METADATA.decode(row[1]).get(AVAILABILITY_ZONE)) is not None and row.uuid != new.uuid
    }
    member = host_aggregate_members.c
    for some in in_batches(affected_nodes(old, new)) if zones else ():
        rows = connection.execute(sa.select(member.aggregate_uuid, member.node).where(member.node.in_(some)))
        elsewhere.update({row.node: zones[row.aggregate_uuid] for row in rows if row.aggregate_uuid in zones})
    return zone_changes(old, new, elsewhere)


def _change_members(connection: Connection, old: Aggregate, new: Aggregate) -> None:
    member = host_aggregate_members.c
    for some in in_batches(old.members - new.members):
        gone = sa.and_(member.aggregate_uuid == old.uuid, member.node.in_(some))
        connection.execute(sa.delete(host_aggregate_members).where(gone))
    joined = [{"aggregate_uuid": new.uuid, "node": node} for node in sorted(new.members - old.members)]
    if joined:
        connection.execute(sa.insert(host_aggregate_members), joined)
