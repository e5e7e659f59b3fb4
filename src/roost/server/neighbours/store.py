"""The tables of the service, and reads and writes of resources within one transaction."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.server.neighbours.errors import Changed, Missing
from roost.storage import EXACT, Schema, identity_table
from roost.storage.errors import ConflictRolledBack

metadata = sa.MetaData()

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

resources = sa.Table(
    "neighbour_resources",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("uuid", sa.String(36), primary_key=True),
    # The network of a port or subnet; the profile of an accelerator request.
    sa.Column("parent", sa.String(36)),
    # The instance that uses it.
    sa.Column("instance", sa.String(255)),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("body", BIG_TEXT, nullable=False),
    sa.Index("neighbour_resources_by_parent", "parent"),
    sa.Index("neighbour_resources_by_instance", "instance"),
    **EXACT,
)
"""Resources. ``body``: the resource in JSON, as its API shows it, without ``revision``."""

units = sa.Table(
    "neighbour_units",
    metadata,
    sa.Column("pool", sa.String(36), primary_key=True),
    sa.Column("unit", sa.String(255), primary_key=True),
    sa.Column("holder", sa.String(36), nullable=False),
    sa.Index("neighbour_units_by_holder", "holder"),
    **EXACT,
)
"""Taken units of pools: addresses of a subnet, devices of a provider."""

database_identity = identity_table(metadata)

SCHEMA = Schema("neighbours", Path(__file__).parent / "migrations", metadata)


class ResourceKind(msgspec.Struct, frozen=True):
    """A kind of resource.

    ``form``: the struct that it is stored as. ``error``: the API's name of the error for an unknown uuid.
    """

    name: str
    form: type[Any]
    error: str


class Resource(msgspec.Struct, frozen=True):
    """A resource and its revision, which each change raises by one."""

    value: Any
    revision: int


def add(
    connection: Connection,
    kind: ResourceKind,
    uuid: str,
    value: msgspec.Struct,
    parent: str | None,
    instance: str,
) -> Resource:
    """Add a resource."""
    row = {"kind": kind.name, "uuid": uuid, "parent": parent, "instance": instance, "revision": 1}
    connection.execute(sa.insert(resources), {**row, "body": _text(value)})
    return Resource(value, 1)


def find(connection: Connection, kind: ResourceKind, uuid: str, *, locked: bool = False) -> Resource:
    """Return a resource. ``locked``: lock it until the transaction ends. Raises `Missing`."""
    query = sa.select(resources.c.body, resources.c.revision)
    query = query.where(resources.c.kind == kind.name, resources.c.uuid == uuid)
    if locked:
        query = query.with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise Missing(f"{kind.name} {uuid} could not be found", kind.error)
    return Resource(msgspec.json.decode(row.body, type=kind.form), row.revision)


def every(
    connection: Connection, kind: ResourceKind, *, parent: str | None = None, instance: str | None = None
) -> list[Resource]:
    """Return the resources of a kind in order of their uuids; of one parent or instance, if given."""
    query = sa.select(resources.c.body, resources.c.revision).where(resources.c.kind == kind.name)
    if parent is not None:
        query = query.where(resources.c.parent == parent)
    if instance is not None:
        query = query.where(resources.c.instance == instance)
    rows = connection.execute(query.order_by(resources.c.uuid)).all()
    return [Resource(msgspec.json.decode(row.body, type=kind.form), row.revision) for row in rows]


def change(
    connection: Connection, kind: ResourceKind, uuid: str, value: msgspec.Struct, seen: int, instance: str
) -> Resource:
    """Replace a resource of revision ``seen``. Raises `Changed` if it has another revision."""
    where = (resources.c.kind == kind.name, resources.c.uuid == uuid, resources.c.revision == seen)
    values = {"body": _text(value), "revision": seen + 1, "instance": instance}
    if not connection.execute(sa.update(resources).where(*where).values(values)).rowcount:
        raise Changed(f"{kind.name} {uuid} was changed by somebody else")
    return Resource(value, seen + 1)


def remove(connection: Connection, kind: ResourceKind, uuid: str) -> None:
    """Remove a resource, and free its units of pools."""
    release_units(connection, uuid)
    connection.execute(sa.delete(resources).where(resources.c.kind == kind.name, resources.c.uuid == uuid))


def release_units(connection: Connection, holder: str) -> None:
    """Free the units of pools that a resource holds."""
    connection.execute(sa.delete(units).where(units.c.holder == holder))


def take_unit(connection: Connection, pool: str, candidates: Iterable[str], holder: str) -> str | None:
    """Take the first free unit of a pool among the candidates, and return it; None if none is free."""
    taken = set(connection.execute(sa.select(units.c.unit).where(units.c.pool == pool)).scalars())
    unit = next((each for each in candidates if each not in taken), None)
    if unit is not None:
        try:
            connection.execute(sa.insert(units), {"pool": pool, "unit": unit, "holder": holder})
        except IntegrityError as error:
            # Another process has taken it meanwhile: the transaction is run again.
            raise ConflictRolledBack(f"{unit} of {pool} was taken meanwhile") from error
    return unit


def _text(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
