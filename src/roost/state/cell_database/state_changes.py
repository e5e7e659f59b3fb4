"""The log of the state changes of a cell's instances, which readers page through by position.

The transaction that changes a state adds a row without a position, and waits for no other. Later a process
numbers the committed rows (`number_new_changes`): one process at a time, as the row with the last position is
locked. So positions are committed in their order, and a reader that has seen one has seen all before it. Why
not a position that the changing transaction draws itself: either a lower one is committed after a higher one
was read, or all transactions of a cell wait for each other until they are durable.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Transition
from roost.state.cell_database.rows import decoded
from roost.state.cell_database.tables import instances, state_changes, state_changes_position
from roost.state.newest_rows import NewestRows, newest_rows
from roost.storage import in_batches, insert_rows, one_of, short_read, transaction

NUMBERED_AT_ONCE = 2000
"""Changes that one transaction numbers at most."""

LOOKED_AT_ONCE = 10_000
"""Changes that one read examines at most: a filter may let none of them pass."""

PRUNED_AT_ONCE = 1000
"""Changes that one transaction removes at most."""

MOST_SKEWED = 1000
"""Changes of a time or later among which the first by position is looked for: the clocks of the processes
that wrote them differ, so the first by time need not be the first by position."""

_LINE = msgspec.json.Decoder(Transition)


class StateChange(NamedTuple):
    """The entry of an instance into a state. ``host``, ``node``: of its present attempt, None without one."""

    position: int
    instance: str
    host: str | None
    node: str | None
    transition: Transition


class ReadChanges(NamedTuple):
    """Changes in order.

    ``end``: the position up to which the log was examined. ``last``: the last position of the log. ``until``:
    the time of the change at ``end`` (seconds since the epoch), None if there is none.
    """

    changes: list[StateChange]
    end: int
    last: int
    until: float | None


def note_changes(connection: Connection, uuids: Iterable[str], line: str) -> None:
    """Add the changes of instances that are here, in the transaction that makes them.

    ``line``: of their histories. Hosts and nodes are taken from their rows.
    """
    told = _LINE.decode(line)
    for some in in_batches(uuids):
        values = {"uuids": some, "at": told.at, "state": told.state, "line": line}
        connection.execute(_NOTE, values)


def note_first_changes(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Add the changes of instances that arrive. ``rows``: theirs."""
    new = [tuple(row[name] for name in _OF_ROW) for row in rows]
    insert_rows(connection, state_changes, _COLUMNS, new)


@transaction
def number_new_changes(connection: Connection) -> int:
    """Give positions to changes that have none. Returns their number.

    If it is `NUMBERED_AT_ONCE` there may be more. 0: there are none, or another process is numbering now.
    """
    # Does not wait for the lock: its holder may wait for a lock of this transaction.
    last: int | None = connection.execute(_LOCK).scalar()
    if last is None:
        return 0
    ids = connection.execute(_UNNUMBERED).scalars().all()
    if ids:
        # One statement for all: positions have the gaps that their ids have.
        shift = last + 1 - ids[0]
        for first in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[first : first + _IDS_AT_ONCE]
            connection.execute(_NUMBER, {"ids": some, "shift": shift})
        raised = sa.update(state_changes_position).values(position=ids[-1] + shift)
        connection.execute(raised)
    return len(ids)


@short_read
def has_unnumbered(connection: Connection) -> bool:
    """Return whether there are changes without a position."""
    # In any order: a plan that looks for the first by id may read the whole log.
    return connection.execute(_UNNUMBERED.order_by(None).limit(1)).first() is not None


@transaction
def changes_after(
    connection: Connection,
    *,
    after: int | None,
    most: int,
    since: float | None = None,
    state: str | None = None,
    host: str | None = None,
    instance: str | None = None,
) -> ReadChanges:
    """Return up to ``most`` changes after a position; without one, from the first change on.

    ``since``: only changes of this time (seconds since the epoch) or later. ``state``, ``host``,
    ``instance``: only their changes. A position after the last one means that the database was restored to an
    earlier state: the reader goes on from the last one.
    """
    # Changes that are numbered after the first statement are left to the next read.
    last: int = connection.execute(_LAST).scalar_one()
    start = _last_before(connection, since, last) if after is None else min(after, last)
    seen = state_changes.c.position
    there = seen > start, seen <= last
    wanted = (
        (state_changes.c.state, state),
        (state_changes.c.host, host),
        (state_changes.c.instance_uuid, instance),
    )
    conditions: list[sa.ColumnElement[bool]] = [
        column == value for column, value in wanted if value is not None
    ]
    if since is not None:
        conditions.append(state_changes.c.at >= since)
    end: int | None = None
    if conditions:
        edge = sa.select(seen).where(*there).order_by(seen).offset(LOOKED_AT_ONCE - 1).limit(1)
        end = connection.execute(edge).scalar()
    query = _CHANGES.where(seen > start, seen <= (last if end is None else end), *conditions)
    rows = connection.execute(query.order_by(seen).limit(most)).all()
    if len(rows) == most:
        end = rows[-1].position
    until = None if end is None else connection.execute(_TIME, {"of": end}).scalar()
    changes = [change for row in rows if (change := change_of(row)) is not None]
    return ReadChanges(changes, last if end is None else end, last, until)


@transaction
def newest_changes(
    connection: Connection,
    *,
    until: float,
    since: float | None,
    most: int,
    states: tuple[str, ...] | None = None,
    host: str | None = None,
    instance: str | None = None,
) -> NewestRows:
    """Return up to ``most`` of the wanted changes, the newest first, for `change_of`.

    Changes that have no position yet are among them.
    """
    columns = state_changes.c
    conditions: list[sa.ColumnElement[bool]] = [
        column == value
        for column, value in ((columns.host, host), (columns.instance_uuid, instance))
        if value is not None
    ]
    if states is not None:
        conditions.append(columns.state.in_(states))
    shown = [columns[name] for name in ("position", "instance_uuid", "host", "node", "line")]
    return newest_rows(
        connection, state_changes, shown, until=until, since=since, most=most, wanted=conditions
    )


def _last_before(connection: Connection, since: float | None, last: int) -> int:
    """Return the position before the first change of a time or later, or before the first of all."""
    numbered = state_changes.c.position.is_not(None)
    query = sa.select(sa.func.min(state_changes.c.position))
    if since is not None:
        early = sa.select(state_changes.c.position).where(numbered, state_changes.c.at >= since)
        first = early.order_by(state_changes.c.at).limit(MOST_SKEWED).subquery()
        query = sa.select(sa.func.min(first.c.position))
    oldest: int | None = connection.execute(query).scalar()
    return last if oldest is None else oldest - 1


@transaction
def prune_changes(connection: Connection, older_than: float) -> int:
    """Remove changes from before ``older_than`` (seconds since the epoch).

    Returns their number; if it is `PRUNED_AT_ONCE` there may be more.
    """
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    for first in range(0, len(old), _IDS_AT_ONCE):
        connection.execute(_PRUNE, {"ids": old[first : first + _IDS_AT_ONCE]})
    return len(old)


_IDS_AT_ONCE = 500
_COLUMNS = ("at", "state", "instance_uuid", "host", "node", "line")
_OF_ROW = ("changed_at", "state", "uuid", "host", "node", "history")
"""The same columns, as the rows of instances have them."""
_LAST = sa.select(state_changes_position.c.position)
_LOCK = _LAST.with_for_update(skip_locked=True)
_END = sa.select(sa.func.max(state_changes.c.id))
_UNNUMBERED = (
    sa.select(state_changes.c.id)
    .where(state_changes.c.position.is_(None))
    .order_by(state_changes.c.id)
    .limit(NUMBERED_AT_ONCE)
)
_NUMBER = (
    sa.update(state_changes)
    .where(one_of(state_changes.c.id, "ids"), state_changes.c.position.is_(None))
    .values(position=state_changes.c.id + sa.bindparam("shift", type_=sa.BigInteger))
)
_CHANGES = sa.select(
    *(state_changes.c[name] for name in ("position", "instance_uuid", "host", "node", "line"))
)
_TIME = sa.select(state_changes.c.at).where(state_changes.c.position == sa.bindparam("of"))
_OLD = (
    sa.select(state_changes.c.id)
    .where(state_changes.c.at < sa.bindparam("before"))
    .order_by(state_changes.c.at)
    .limit(PRUNED_AT_ONCE)
)
_PRUNE = sa.delete(state_changes).where(one_of(state_changes.c.id, "ids"))
_NOTE = sa.insert(state_changes).from_select(
    [*_COLUMNS],
    sa.select(
        sa.bindparam("at", type_=sa.Double),
        sa.bindparam("state", type_=sa.String(20)),
        instances.c.uuid,
        instances.c.host,
        instances.c.node,
        sa.bindparam("line", type_=sa.Text),
    ).where(one_of(instances.c.uuid, "uuids")),
)


@short_read
def changes_end(connection: Connection) -> int:
    """Return the number of the last change, whether it has a position or not."""
    end: int | None = connection.execute(_END).scalar()
    return end or 0


def change_of(row: sa.Row[Any]) -> StateChange | None:
    """Return the change that a row has; None if it cannot be decoded."""
    told = decoded(_LINE, row.line, None, f"state change {row.position}")
    return None if told is None else StateChange(row.position, row.instance_uuid, row.host, row.node, told)
