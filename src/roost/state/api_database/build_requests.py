"""Build requests: accepted, owned by one conductor at a time, mapped to cells, and finished.

    accepted  AcceptRequest          with a mapping of each instance to no cell
    owned     find_free_requests, take_requests, take_over_mappings; retake_request before a retry
    mapped    MapInstances           each instance to its cell, before it is put there
    deleted   delete_owned           instances that the owner gives up
    finished  FinishRequest          its instances are in cells; the request is removed

Each owner of a request has a number, ``owner_epoch``, which a takeover of the request raises. Every write
names owner and epoch, and changes nothing if they are outdated. Requests that are not finished are read by
`roost.state.api_database.request_reads`, the mappings live on in ``mappings``.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.model.instance import BuildRequest
from roost.state.api_database.mappings import DeleteMapped, InstanceMapping
from roost.state.api_database.past import note_late_claims
from roost.state.api_database.request_reads import decoded, find_unfinished
from roost.state.api_database.server_groups import add_members
from roost.state.api_database.tables import build_requests, instance_mappings
from roost.state.leases import holders
from roost.storage import in_batches, is_duplicate_key, one_of, short_read, transaction
from roost.web.errors import Conflict

_ENCODER = msgspec.json.Encoder()

# Statements that each request needs are built once: building takes longer than executing.
_ACCEPT = sa.insert(build_requests)
_FINISH = sa.delete(build_requests).where(one_of(build_requests.c.request_id, "some"))
_INSTANCES = sa.select(instance_mappings.c.instance_uuid).where(
    one_of(instance_mappings.c.request_id, "some")
)
_OWNER = sa.select(build_requests.c.owner, build_requests.c.owner_epoch).where(
    build_requests.c.request_id == sa.bindparam("of")
)
_SOME = one_of(instance_mappings.c.instance_uuid, "some")
_STATES = (
    sa.select(instance_mappings.c.instance_uuid, instance_mappings.c.epoch, instance_mappings.c.deleted)
    .where(_SOME)
    .order_by(instance_mappings.c.instance_uuid)
    .with_for_update()
)

# Two transactions that lock the same rows do it in the same order.
_OWNERS = (
    sa.select(build_requests.c.request_id, build_requests.c.owner, build_requests.c.owner_epoch)
    .where(one_of(build_requests.c.request_id, "some"))
    .order_by(build_requests.c.request_id)
    .with_for_update()
)
_INSERT_MAPPINGS = sa.insert(instance_mappings)
_MAP = sa.update(instance_mappings).where(_SOME).values(cell=sa.bindparam("to"), epoch=sa.bindparam("by"))
_KEY = (build_requests.c.request_id, build_requests.c.owner, build_requests.c.owner_epoch)


class RequestKey(NamedTuple):
    """A request with its owner and the owner's epoch, as each write names them."""

    request_id: str
    owner: str | None
    epoch: int

    def matches(self) -> tuple[sa.ColumnElement[bool], ...]:
        """Return the condition that the owner is still this one."""
        # IS NOT DISTINCT FROM would read the whole table: PostgreSQL has no index for it.
        request_id, owner, epoch = _KEY
        owned = owner.is_(None) if self.owner is None else owner == self.owner
        return request_id == self.request_id, owned, epoch == self.epoch


class OwnedRequest(msgspec.Struct, frozen=True):
    """A request that this process carries."""

    request: BuildRequest
    owner: str
    epoch: int

    @property
    def key(self) -> RequestKey:
        """The request, its owner and the epoch, for writes."""
        return RequestKey(self.request.request_id, self.owner, self.epoch)


class InstanceExists(Conflict):
    """A request names an instance that an earlier request has made. The text has the id of the request."""


class AcceptRequest(msgspec.Struct, frozen=True):
    """Store a request, with a mapping for each of its instances; when it is durable, it will be carried out.

    ``owner``: the holder of the lease of the process that accepts it; None: any conductor may take it.
    Answers the owner's epoch; 0, and nothing is written, if a request with this id is there already.
    Raises `InstanceExists`; `UnicodeEncodeError` for text that cannot be stored: see
    `roost.conductor.request_check.clean_request`.
    """

    request: BuildRequest
    at: float
    owner: str | None = None

    @property
    def keys(self) -> Collection[str]:
        return (self.request.request_id,)

    def __call__(self, connection: Connection) -> int:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[AcceptRequest]") -> list[int]:
        there = find_unfinished(tuple(work.request.request_id for work in works))(connection)
        new = [work for work in works if work.request.request_id not in there]
        try:
            if new:
                connection.execute(_ACCEPT, [work.row() for work in new])
                _insert_mappings(connection, [(work.request, work.at) for work in new])
        except IntegrityError as error:
            if not is_duplicate_key(error):
                raise
            # Looked up only now, as new requests have new uuids. Of several requests each is tried alone.
            names = ", ".join(work.request.request_id for work in new)
            raise InstanceExists(f"request {names} names instances that exist already") from error
        for request in (work.request for work in new):
            if request.spec.group is not None:
                add_members(connection, request.spec.group.uuid, request.instances)
        return [int(work.request.request_id not in there) for work in works]

    def row(self) -> dict[str, object]:
        """Return the row of the request."""
        return {
            "request_id": self.request.request_id,
            "request": _ENCODER.encode(self.request).decode(),
            "accepted_at": self.at,
            "owner": self.owner,
            "owner_epoch": 1,
        }


def _insert_mappings(connection: Connection, accepted: Sequence[tuple[BuildRequest, float]]) -> None:
    """Insert mappings of the instances of requests, to no cell yet.

    ``accepted``: requests, each with the time of its acceptance in seconds since the epoch.
    """
    rows = [
        {
            "instance_uuid": uuid,
            "cell": None,
            "epoch": 0,
            "request_id": request.request_id,
            "project_id": request.spec.project_id,
            "user_id": request.spec.user_id,
            "deleted": False,
            "accepted_at": at,
            "name": name,
        }
        for request, at in accepted
        for uuid, name in zip(request.instances, request.names, strict=True)
    ]
    if rows:
        connection.execute(_INSERT_MAPPINGS, rows)


@short_read
def find_free_requests(connection: Connection, owner: str, most: int) -> list[RequestKey]:
    """Return requests that have no living owner, or are owned by ``owner`` itself, in order of acceptance.

    ``most``: the number of requests at most, from the first on.
    """
    values = {"me": owner, "most": most}
    return [RequestKey(*row) for row in connection.execute(_FREE, values)]


_FREE = (
    sa.select(*_KEY)
    .where(
        build_requests.c.owner.is_(None)
        | (build_requests.c.owner == sa.bindparam("me"))
        | build_requests.c.owner.not_in(holders())
    )
    .order_by(build_requests.c.accepted_at)
    .limit(sa.bindparam("most"))
)


class TakenRequests(msgspec.Struct, frozen=True):
    """The requests that were taken over. ``unreadable``: the ids of requests that cannot be read."""

    owned: list[OwnedRequest]
    unreadable: frozenset[str]


@transaction
def take_requests(connection: Connection, seen: tuple[RequestKey, ...], owner: str) -> TakenRequests:
    """Take requests over from the owners that were seen. Returns the requests that were taken.

    A request that cannot be read is taken too, with a log line, so that it does not keep others from being
    carried out.
    """
    taken = {}
    for key in seen:
        values = {"owner": owner, "owner_epoch": key.epoch + 1}
        if connection.execute(sa.update(build_requests).where(*key.matches()).values(values)).rowcount:
            taken[key.request_id] = key.epoch + 1
    found = []
    for some in in_batches(taken):
        query = sa.select(build_requests.c.request_id, build_requests.c.request).where(
            build_requests.c.request_id.in_(some)
        )
        found += [
            OwnedRequest(request, owner, taken[request.request_id])
            for request in decoded(connection.execute(query))
        ]
    readable = {each.request.request_id for each in found}
    return TakenRequests(found, frozenset(taken.keys() - readable))


@transaction
def take_over_mappings(
    connection: Connection, request_id: str, owner: str, epoch: int
) -> list[InstanceMapping] | None:
    """Refuse further writes of earlier owners of a request; returns its mappings.

    ``epoch``: of the present owner. Returns None if ``owner`` no longer owns the request.
    """
    if _locked_owners(connection, (request_id,)).get(request_id) != (owner, epoch):
        return None
    found = (instance_mappings.c.request_id == request_id,)
    raised = sa.update(instance_mappings).where(*found, instance_mappings.c.epoch.between(0, epoch - 2))
    connection.execute(raised.values(epoch=epoch - 1))
    query = sa.select(instance_mappings).where(*found).order_by(instance_mappings.c.instance_uuid)
    return [InstanceMapping(*row) for row in connection.execute(query)]


@transaction
def retake_request(connection: Connection, key: RequestKey) -> bool:
    """Raise the epoch of a request's owner, for a retry. Returns False if others own the request now."""
    raised = sa.update(build_requests).where(*key.matches())
    return bool(connection.execute(raised.values(owner_epoch=key.epoch + 1)).rowcount)


@short_read
def is_owner(connection: Connection, key: RequestKey) -> bool:
    """Return whether the owner of a request is still this one."""
    return connection.execute(_OWNER, {"of": key.request_id}).one_or_none() == key[1:]


class MapInstances(msgspec.Struct, frozen=True):
    """Map the instances of a request to cells, before they are put there.

    ``cells``: instance -> cell. Answers the instances to put there: those whose deletion is not accepted.
    Answers None, and writes nothing, if others own the request now.
    """

    request_id: str
    owner: str
    epoch: int
    cells: Mapping[str, str]

    @property
    def keys(self) -> Collection[str]:
        return (self.request_id, *self.cells)

    def __call__(self, connection: Connection) -> frozenset[str] | None:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[MapInstances]") -> list[frozenset[str] | None]:
        owners = _locked_owners(connection, [work.request_id for work in works])
        rows = {
            row.instance_uuid: row
            for some in in_batches(uuid for work in works for uuid in work.cells)
            for row in connection.execute(_STATES, {"some": some})
        }
        answers: list[frozenset[str] | None] = []
        to: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for work in works:
            of_it = [rows[uuid] for uuid in work.cells if uuid in rows]
            # In a database that was restored, the epochs of owners went back, and a mapping may have a
            # higher one.
            owns = owners.get(work.request_id) == (work.owner, work.epoch)
            if not owns or any(row.epoch >= work.epoch for row in of_it):
                answers.append(None)
                continue
            going = [row.instance_uuid for row in of_it if not row.deleted]
            for uuid in going:
                to[work.cells[uuid], work.epoch].append(uuid)
            answers.append(frozenset(going))
        for (cell, epoch), uuids in to.items():
            for some in in_batches(uuids):
                connection.execute(_MAP, {"some": some, "to": cell, "by": epoch})
        return answers


@transaction
def delete_owned(connection: Connection, key: RequestKey, uuids: tuple[str, ...], at: float) -> bool:
    """Accept the deletion of instances of a request. Returns False, and deletes none, if others own it."""
    if _locked_owners(connection, [key.request_id]).get(key.request_id) != key[1:]:
        return False
    DeleteMapped(uuids, at, key.owner)(connection)
    return True


class FinishRequest(msgspec.Struct, frozen=True):
    """Remove a request whose instances are in cells. Answers False if others own it now."""

    key: RequestKey

    @property
    def keys(self) -> Collection[str]:
        return (self.key.request_id,)

    def __call__(self, connection: Connection) -> bool:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[FinishRequest]") -> list[bool]:
        owners = _locked_owners(connection, [work.key.request_id for work in works])
        owns = [owners.get(work.key.request_id) == work.key[1:] for work in works]
        finished = [work.key for work, held in zip(works, owns, strict=True) if held]
        for some in in_batches([key.request_id for key in finished]):
            connection.execute(_FINISH, {"some": some})
        # An earlier owner may still claim, for instances that could not be placed or that fail in their cell.
        for some in in_batches([key.request_id for key in finished if key.epoch > 1]):
            note_late_claims(connection.execute(_INSTANCES, {"some": some}).scalars().all())(connection)
        return owns


def _locked_owners(connection: Connection, request_ids: Collection[str]) -> dict[str, tuple[str | None, int]]:
    """Lock requests that are not finished; return the present owner and epoch of each."""
    return {
        request_id: (owner, number)
        for some in in_batches(request_ids)
        for request_id, owner, number in connection.execute(_OWNERS, {"some": some})
    }
