"""Build requests: accepted, owned by one conductor at a time, and finished.

Each owner of a request has a number, ``owner_epoch``, which a takeover of the request raises. Every write
names owner and epoch, and changes nothing if they are outdated.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.model.instance import BuildRequest
from roost.model.text import clean_values
from roost.state.api_database.late_claims import note_late_claims
from roost.state.api_database.mappings import DeleteMapped, insert_mappings, locked_owners
from roost.state.api_database.server_groups import add_members
from roost.state.api_database.tables import build_requests, instance_mappings
from roost.state.leases import holders
from roost.storage import in_batches, is_duplicate_key, one_of, short_read, transaction
from roost.web.errors import Conflict

_log = structlog.get_logger()
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(BuildRequest)

PAGE = 100
"""Waiting requests that one transaction reads at most: after an outage thousands wait, each with its spec."""

# Statements that each request needs are built once: building takes longer than executing.
_ACCEPT = sa.insert(build_requests)
_FINISH = sa.delete(build_requests).where(one_of(build_requests.c.request_id, "some"))
_INSTANCES = sa.select(instance_mappings.c.instance_uuid).where(
    one_of(instance_mappings.c.request_id, "some")
)
_OWNER = sa.select(build_requests.c.owner, build_requests.c.owner_epoch).where(
    build_requests.c.request_id == sa.bindparam("of")
)
_UNFINISHED = sa.select(build_requests.c.request_id).where(one_of(build_requests.c.request_id, "some"))

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
    Raises `InstanceExists`; `UnicodeEncodeError` for text that cannot be stored: see `clean_request`.
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
                insert_mappings(connection, [(work.request, work.at) for work in new])
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
def retake_request(connection: Connection, key: RequestKey) -> bool:
    """Raise the epoch of a request's owner, for a retry. Returns False if others own the request now."""
    raised = sa.update(build_requests).where(*key.matches())
    return bool(connection.execute(raised.values(owner_epoch=key.epoch + 1)).rowcount)


@short_read
def is_owner(connection: Connection, key: RequestKey) -> bool:
    """Return whether the owner of a request is still this one."""
    return connection.execute(_OWNER, {"of": key.request_id}).one_or_none() == key[1:]


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
        owners = locked_owners(connection, [work.key.request_id for work in works])
        owns = [owners.get(work.key.request_id) == work.key[1:] for work in works]
        finished = [work.key for work, held in zip(works, owns, strict=True) if held]
        for some in in_batches([key.request_id for key in finished]):
            connection.execute(_FINISH, {"some": some})
        # An earlier owner may still claim, for instances that could not be placed or that fail in their cell.
        for some in in_batches([key.request_id for key in finished if key.epoch > 1]):
            note_late_claims(connection.execute(_INSTANCES, {"some": some}).scalars().all())(connection)
        return owns


@transaction
def delete_owned(connection: Connection, key: RequestKey, uuids: tuple[str, ...], at: float) -> bool:
    """Accept the deletion of instances of a request. Returns False, and deletes none, if others own it."""
    if locked_owners(connection, [key.request_id]).get(key.request_id) != key[1:]:
        return False
    DeleteMapped(uuids, at, key.owner)(connection)
    return True


@short_read
def find_waiting_requests(connection: Connection, request_ids: tuple[str, ...]) -> dict[str, BuildRequest]:
    """Return by id the requests that are not finished and can be read, of the named ones."""
    found = {}
    for some in in_batches(request_ids):
        query = sa.select(build_requests.c.request_id, build_requests.c.request).where(
            build_requests.c.request_id.in_(some)
        )
        found.update({each.request_id: each for each in decoded(connection.execute(query))})
    return found


@short_read
def find_unfinished(connection: Connection, request_ids: tuple[str, ...]) -> frozenset[str]:
    """Return which of the named requests are not finished."""
    return frozenset(
        each
        for some in in_batches(request_ids)
        for each in connection.execute(_UNFINISHED, {"some": some}).scalars()
    )


class RequestPage(NamedTuple):
    """The marker of a page of waiting requests: the last request of the page before."""

    accepted_at: float = 0.0
    request_id: str = ""


FIRST_PAGE = RequestPage()


@transaction
def read_waiting_page(
    connection: Connection, after: RequestPage = FIRST_PAGE, only: str | None = None
) -> tuple[list[BuildRequest], RequestPage | None]:
    """Return up to `PAGE` waiting requests, and the marker of the next page; None after the last one.

    ``only``: the id of the only one that is read.
    """
    at, request_id = place = (build_requests.c.accepted_at, build_requests.c.request_id)
    query = (
        sa.select(request_id, build_requests.c.request, at)
        .where(at >= after.accepted_at, sa.or_(at > after.accepted_at, request_id > after.request_id))
        .order_by(*place)
        .limit(PAGE)
    )
    if only is not None:
        query = query.where(request_id == only)
    rows = connection.execute(query).all()
    following = RequestPage(rows[-1].accepted_at, rows[-1].request_id) if len(rows) == PAGE else None
    return list(decoded(row[:2] for row in rows)), following


def waiting_requests(connection: Connection) -> Iterator[BuildRequest]:
    """Yield the requests that are not finished, in order of acceptance, in the connection's transaction."""
    page: RequestPage | None = FIRST_PAGE
    while page is not None:
        requests, page = read_waiting_page(page)(connection)
        yield from requests


def clean_request(request: BuildRequest) -> BuildRequest:
    """Return the request with all texts of its spec cleaned; the same object if they are clean, as mostly."""
    try:
        if b"\\u0000" not in _ENCODER.encode(request):
            return request
    except UnicodeEncodeError:
        pass
    return msgspec.convert(clean_values(msgspec.to_builtins(request)), BuildRequest)


def decoded(rows: Iterable[Any]) -> Iterator[BuildRequest]:
    """Yield the requests in rows of id and text.

    One that cannot be read is left out, with a log line: it must not keep the others from being carried out.
    """
    for request_id, text in rows:
        try:
            yield _DECODER.decode(text)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            _log.error("a build request cannot be read", request_id=request_id, error=str(error))
