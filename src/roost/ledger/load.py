"""Loading: from the tables to a fleet, by columns."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.fleet.columns import Int32, Int64, Rows
from roost.fleet.groups import GroupMembers
from roost.fleet.inventory_columns import InventoryRecords
from roost.fleet.inverted_index import NameSets
from roost.fleet.owner_usages import Owner, OwnerUsages
from roost.fleet.provider_forest import ProviderColumns
from roost.ledger import tables
from roost.ledger.errors import Damaged
from roost.ledger.holdings import assignment_from_text
from roost.model.assignment import Assignment

_AT_ONCE = 20_000
"""Rows fetched together: at most so many are Python objects at the same time."""
_TELLS_ALL = "'roost db verify' tells all that is wrong"

Column = npt.NDArray[Any]
Columns = Sequence[Sequence[Any]]
Used = tuple[Rows, Int64]


def head(connection: Connection) -> int:
    """Return the newest commit's sequence number, 0 if there is none."""
    return connection.execute(sa.select(sa.func.max(tables.commits.c.seq))).scalar() or 0


def announced(connection: Connection) -> int:
    """Return the mark of the operator's word that was announced last, 0 if there is none."""
    return connection.execute(sa.select(tables.operator_word.c.mark)).scalar() or 0


def load(connection: Connection) -> Fleet:
    """Return the fleet in the state of the tables. The connection's transaction must see one snapshot.

    Raises: `Damaged` if rows refer to providers, resource classes or traits that do not exist.
    """
    classes = _names(connection, tables.resource_classes)
    traits = _names(connection, tables.traits)
    providers = _providers(connection)
    held = _allocations(connection)
    fleet = Fleet.load(
        providers,
        dict(_inventories(connection, classes)),
        _traits(connection, traits),
        _aggregates(connection),
        dict(_used(held, classes, providers.rows)),
        _members(connection),
        _assignments(connection),
        _owner_usages(connection, held, classes),
    )
    fleet.resource_classes = {name: number for number, name in classes.items()}
    fleet.traits = {name: number for number, name in traits.items()}
    fleet.word = announced(connection)
    fleet.version = head(connection)
    return fleet


def _providers(connection: Connection) -> ProviderColumns:
    table = tables.resource_providers
    uuids: list[str] = []
    names: list[str] = []

    def numbers() -> Iterator[Columns]:
        for rows, some_uuids, some_names, *rest in _read(connection, sa.select(table).order_by(table.c.id)):
            uuids.extend(some_uuids)
            names.extend(some_names)
            yield rows, *rest

    rows, parents, generations, changed_at = _columns(numbers(), (np.int32, float, np.int64, float))
    above = np.where(np.isnan(parents), -1, parents).astype(np.int32)
    return ProviderColumns(rows.astype(np.intp), uuids, names, above, generations, changed_at)


def _inventories(connection: Connection, classes: dict[int, str]) -> Iterator[tuple[str, InventoryRecords]]:
    table = tables.inventories
    query = sa.select(table).order_by(table.c.provider_id, table.c.resource_class_id)
    types = (np.intp, np.int64, *(np.int32,) * 5, float)
    rows, class_ids, *record = _columns(_read(connection, query), types)
    for number in np.unique(class_ids).tolist():
        places = np.flatnonzero(class_ids == number)
        total, reserved, min_unit, max_unit, step_size, ratio = [column[places] for column in record]
        inventories = InventoryRecords(rows[places], total, reserved, min_unit, max_unit, step_size, ratio)
        yield _named(classes, number, "inventories of resource class"), inventories


def _traits(connection: Connection, traits: dict[int, str]) -> NameSets:
    """Yield the providers of each set of traits.

    The database joins the traits of a provider into one text, because there are many times as many rows as
    providers, and most providers have the same set.
    """
    table = tables.provider_traits
    numbers = sa.func.aggregate_strings(sa.cast(table.c.trait_id, sa.String(11)), ",")
    query = sa.select(table.c.provider_id, numbers).group_by(table.c.provider_id)
    having: dict[str, list[int]] = {}
    for rows, texts in _read(connection, query):
        for row, text in zip(rows, texts, strict=True):
            having.setdefault(text, []).append(row)
    for text, rows in having.items():
        names = (_named(traits, int(number), "providers with trait") for number in text.split(","))
        yield tuple(sorted(names)), rows


def _aggregates(connection: Connection) -> NameSets:
    table = tables.provider_aggregates
    query = sa.select(table.c.provider_id, table.c.aggregate_uuid).order_by(table.c.provider_id)
    inside: dict[tuple[str, ...], list[int]] = {}
    pairs = (pair for part in _read(connection, query) for pair in zip(*part, strict=True))
    for row, members in groupby(pairs, key=itemgetter(0)):
        inside.setdefault(tuple(sorted(member[1] for member in members)), []).append(row)
    return inside.items()


class _Allocations(NamedTuple):
    """All allocations, as parallel columns. ``consumer``: the id in the tables, ``provider``: the row."""

    consumer: Int64
    provider: Rows
    class_id: Int32
    used: Int64


def _allocations(connection: Connection) -> _Allocations:
    """Read all allocations, by one scan of the table.

    Two sums by the database, by provider and by owner, take twice as long on SQLite, which sorts for them.
    """
    table = tables.allocations
    query = sa.select(table.c.consumer_id, table.c.provider_id, table.c.resource_class_id, table.c.used)
    return _Allocations(*_columns(_read(connection, query), (np.int64, np.intp, np.int32, np.int64)))


def _used(held: _Allocations, classes: dict[int, str], providers: Rows) -> Iterator[tuple[str, Used]]:
    """Yield the use of each resource class: the providers, and the amount of each."""
    numbers = np.unique(held.class_id).tolist()
    # The table has no foreign keys.
    no_provider = np.setdiff1d(held.provider, providers).tolist()
    no_class = [number for number in numbers if number not in classes]
    for what, unknown in (("provider", no_provider), ("class", no_class)):
        if unknown:
            raise _damaged(f"allocations of resource {what}", unknown[0])
    size = int(providers.max()) + 1 if len(providers) else 0
    for number in numbers:
        amounts = _sums(held, number, held.provider, size)
        rows = np.flatnonzero(amounts)
        yield classes[number], (rows, amounts[rows])


def _owner_usages(connection: Connection, held: _Allocations, classes: dict[int, str]) -> OwnerUsages:
    """Sum up the holdings of projects and users. Allocations without their consumer belong to nobody."""
    table = tables.consumers
    query = sa.select(table.c.id, table.c.project_id, table.c.user_id, table.c.consumer_type)
    places: dict[Owner, int] = {}

    def owned() -> Iterator[Columns]:
        for ids, *names in _read(connection, query.order_by(table.c.id)):
            owners = map(Owner, *names)
            yield ids, [places.setdefault(owner, len(places)) for owner in owners]

    ids, owner_of = _columns(owned(), (np.int64, np.intp))
    at = np.searchsorted(ids, held.consumer)
    known = at < len(ids)
    known[known] = ids[at[known]] == held.consumer[known]
    held = _Allocations(held.consumer[known], held.provider[known], held.class_id[known], held.used[known])
    owner = owner_of[at[known]]
    return OwnerUsages.load(
        list(places),
        np.bincount(owner_of, minlength=len(places)).astype(np.int64),
        {
            classes[number]: _sums(held, number, owner, len(places))
            for number in np.unique(held.class_id).tolist()
        },
    )


def _sums(held: _Allocations, class_id: int, by: Rows, size: int) -> Int64:
    """Return the amounts of a resource class, summed up by the numbers ``by``, one for each allocation."""
    sums = np.zeros(size, dtype=np.int64)
    of_class = held.class_id == class_id
    np.add.at(sums, by[of_class], held.used[of_class])
    return sums


def _members(connection: Connection) -> GroupMembers:
    """Return the members of server groups. Their providers exist: `_used` has seen all allocations."""
    consumers, allocations = tables.consumers, tables.allocations
    query = (
        sa.select(consumers.c.server_group, consumers.c.uuid, allocations.c.provider_id)
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .where(consumers.c.server_group.is_not(None))
        .distinct()
    )
    members: dict[str, dict[str, list[int]]] = {}
    for part in _read(connection, query):
        for group, consumer, row in zip(*part, strict=True):
            members.setdefault(group, {}).setdefault(consumer, []).append(row)
    return members


def _assignments(connection: Connection) -> Iterator[tuple[str, Assignment]]:
    """Yield the assignments of consumers."""
    table = tables.consumers
    query = sa.select(table.c.uuid, table.c.assignment).where(table.c.assignment.is_not(None))
    for part in _read(connection, query):
        for consumer, text in zip(*part, strict=True):
            assignment = assignment_from_text(consumer, text)
            if assignment is not None:
                yield consumer, assignment


def _named(names: dict[int, str], number: int, what: str) -> str:
    """Return the name of a resource class or a trait. Raises: `Damaged`."""
    try:
        return names[number]
    except KeyError:
        raise _damaged(what, number) from None


def _damaged(what: str, number: int) -> Damaged:
    return Damaged(f"there are {what} {number} (an id), which is not there: {_TELLS_ALL}")


def _columns(parts: Iterable[Columns], dtypes: Sequence[npt.DTypeLike]) -> list[Column]:
    """Return the columns of a query's rows as arrays. NULL becomes NaN in an array of floats.

    Raises: `Damaged` if a number has too many bits for its column.
    """
    try:
        arrays = [
            [np.array(values, dtype) for values, dtype in zip(part, dtypes, strict=True)] for part in parts
        ]
    except OverflowError as error:
        raise Damaged(f"a number has too many bits ({error}): {_TELLS_ALL}") from None
    empty = [np.zeros(0, dtype) for dtype in dtypes]
    return [np.concatenate(column) for column in zip(empty, *arrays, strict=True)]


def _read(connection: Connection, query: sa.Select[Any]) -> Iterator[Columns]:
    """Yield the columns of a query's rows, `_AT_ONCE` rows at a time."""
    result = connection.execute(query, execution_options={"yield_per": _AT_ONCE})
    for part in result.partitions():
        yield tuple(zip(*part, strict=True))


def _names(connection: Connection, table: sa.Table) -> dict[int, str]:
    return {row.id: row.name for row in connection.execute(sa.select(table))}
