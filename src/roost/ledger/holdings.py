"""Holdings: consumers and their allocations, read from the tables."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection

from roost.ledger.errors import Damaged
from roost.ledger.state import Held
from roost.ledger.tables import UUID, allocations, consumers, resource_classes, resource_providers
from roost.model.allocation import Consumer
from roost.model.assignment import Assignment
from roost.storage import in_batches, one_of

_decoder = msgspec.json.Decoder(Assignment)


def assignment_text(assignment: Assignment | None) -> str | None:
    """Encode an assignment."""
    return None if assignment is None else msgspec.json.encode(assignment).decode()


def assignment_from_text(consumer: str, text: str | None) -> Assignment | None:
    """Decode the assignment of a consumer. Raises: `Damaged` if the text is not one of an assignment."""
    try:
        return None if text is None else _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise Damaged(
            f"the assignment of consumer {consumer} cannot be read: {error}; 'roost db verify' tells all "
            "that is wrong"
        ) from error


class Holdings(NamedTuple):
    """Consumers by uuid: their allocations, and their ids in the tables."""

    held: dict[str, Held]
    ids: dict[str, int]


HOLDING = (
    consumers.c.id,
    consumers.c.uuid,
    consumers.c.project_id,
    consumers.c.user_id,
    consumers.c.generation,
    consumers.c.consumer_type,
    consumers.c.server_group,
    consumers.c.assignment,
    resource_providers.c.uuid,
    resource_classes.c.name,
    allocations.c.used,
)
"""The columns that `holdings_from_rows` takes. A consumer without allocations has one row, with NULLs."""


def with_allocations(these: sa.FromClause) -> sa.FromClause:
    """Join ``these`` (the consumers, or a join with them) with all allocations of the consumers."""
    # Chained, because SQLite would materialise a nested join first.
    return (
        these.outerjoin(allocations, allocations.c.consumer_id == consumers.c.id)
        .outerjoin(resource_providers, resource_providers.c.id == allocations.c.provider_id)
        .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    )


_IN = one_of(consumers.c.uuid, "uuids")
_ANY = consumers.c.uuid == sa.any_(sa.bindparam("uuids", type_=ARRAY(UUID)))


def for_named(statement: Callable[[sa.ColumnElement[bool]], sa.Select[Any]]) -> Callable[..., Sequence[Any]]:
    """Return a function that executes ``statement`` for named consumers: ``(connection, uuids)`` to rows.

    ``statement`` gets the condition that a consumer is among ``uuids``. PostgreSQL gets the uuids as one
    array, so the statement is the same for any number of them and is planned once.
    """
    one_by_one, together = statement(_IN), statement(_ANY)

    def rows(connection: Connection, uuids: Sequence[str]) -> Sequence[Any]:
        chosen = together if connection.dialect.name == "postgresql" else one_by_one
        return connection.execute(chosen, {"uuids": uuids}).all()

    return rows


_ALL = sa.select(*HOLDING).select_from(with_allocations(consumers))
_named = for_named(_ALL.where)
_ON_PROVIDER = (
    sa.select(consumers.c.uuid)
    .join(allocations, allocations.c.consumer_id == consumers.c.id)
    .join(resource_providers, resource_providers.c.id == allocations.c.provider_id)
)


def held_by(connection: Connection, uuids: Iterable[str]) -> dict[str, Held]:
    """Return the named consumers that exist, with their allocations."""
    return holdings_of(connection, uuids).held


def holdings_of(connection: Connection, uuids: Iterable[str]) -> Holdings:
    """Return the named consumers that exist, with their allocations and ids."""
    found = Holdings({}, {})
    for some in in_batches(uuids):
        held, ids = holdings_from_rows(_named(connection, some))
        found.held.update(held)
        found.ids.update(ids)
    return found


def held_on(connection: Connection, provider: str) -> dict[str, Held]:
    """Return the consumers with an allocation from a provider, with all their allocations."""
    return held_by(connection, sorted(consumers_on(connection, provider)))


def consumers_on(connection: Connection, provider: str) -> frozenset[str]:
    """Return the consumers with an allocation from a provider."""
    rows = connection.execute(_ON_PROVIDER.where(resource_providers.c.uuid == provider).distinct())
    return frozenset(rows.scalars())


def consumers_of_rows(
    connection: Connection, rows: Sequence[int], limit: int, offset: int = 0
) -> tuple[int, list[str]]:
    """Return the number of consumers with an allocation from some providers, and some of them, newest first.

    ``rows``: the keys of the providers.
    """
    of = allocations.c.provider_id.in_(rows)
    total = connection.scalar(sa.select(sa.func.count(sa.distinct(allocations.c.consumer_id))).where(of))
    ids = (
        sa.select(allocations.c.consumer_id)
        .where(of)
        .distinct()
        .order_by(allocations.c.consumer_id.desc())
        .limit(limit)
        .offset(offset)
        .subquery()
    )
    found = sa.select(consumers.c.uuid).join(ids, ids.c.consumer_id == consumers.c.id)
    return total or 0, list(connection.execute(found.order_by(consumers.c.id.desc())).scalars())


def held_by_all(connection: Connection) -> dict[str, Held]:
    """Return every consumer, with its allocations."""
    return holdings_from_rows(connection.execute(_ALL)).held


def holdings_from_rows(rows: Iterable[Sequence[Any]]) -> Holdings:
    """Return consumers from rows of the columns `HOLDING`."""
    held: dict[str, Held] = {}
    ids: dict[str, int] = {}
    for number, uuid, project, user, generation, kind, group, assignment, provider, name, used in rows:
        if uuid not in ids:
            ids[uuid] = number
            has = assignment_from_text(uuid, assignment)
            held[uuid] = Held(Consumer(uuid, project, user, generation, kind, group, has), {})
        if provider is not None:
            held[uuid].allocations.setdefault(provider, {})[name] = used
    return Holdings(held, ids)
