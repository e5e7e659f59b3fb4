"""The history of an instance: a text in its row, with a line for each state that it entered.

The statement that changes the state appends the line, so a history is never ahead of the state or behind it.
The same lines are a log of the whole cell: see `roost.state.cell_database.state_changes`. When an instance is
removed, its history moves to ``past_instances`` and is kept there for a time.
"""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, ERROR, GONE, OF_MOVES, RESHAPED, Instance, Requester, Transition
from roost.model.secrets import redacted_text
from roost.model.text import clean_text
from roost.state.cell_database.rows import Row, decoded
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances, past_instances
from roost.storage import in_batches, one_of, transaction

MOST = 65_536
"""Characters of a history at most. Transitions after that are left out."""

MOST_OF_GUESTS = 16_384
"""Characters of a history up to which lost and found guests, reshapes, stops and starts are added: a host may
lose and find a guest for ever, and the end of the instance must have room."""

MOST_OF_REASON = 1000
"""Characters of a reason in a history; the rest is cut off."""

PRUNED_AT_ONCE = 1000
"""Past instances that one transaction removes, about."""

_JSON = msgspec.json.Encoder()
_LINE = msgspec.json.Decoder(Transition)


class StoredHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history of an instance in its cell. Its ``state`` is `GONE` if the instance was removed.

    ``complete``: no transition was left out.
    """

    uuid: str
    request_id: str
    run: str
    project_id: str
    user_id: str
    flavor: str
    state: str
    transitions: tuple[Transition, ...]
    complete: bool


@transaction
def read_history(connection: Connection, uuid: str) -> StoredHistory | None:
    """Return the history of an instance that is in the cell or was there; None for an unknown one."""
    for query in (_OF_PRESENT, _OF_PAST):
        row = connection.execute(query, {"of": uuid}).one_or_none()
        if row is not None:
            return _stored(row)
    return None


def line(
    state: str,
    at: float,
    reason: str | None = None,
    code: str | None = None,
    *,
    by: Requester | None = None,
) -> str:
    """Return the line of a transition. Parts of the reason that look like secrets are masked."""
    if code is not None:
        code = clean_text(code, MOST_OF_REASON)
    return transition_line(Transition(state=state, at=at, reason=reason, code=code, by=by))


def line_of_attempt(at: float, attempt: int, host: str | None, node: str | None, ordinal: int) -> str:
    """Return the line of an attempt that begins."""
    return transition_line(
        Transition(state=ASSIGNED, at=at, attempt=attempt, host=host, node=node, ordinal=ordinal or attempt)
    )


def first_line(instance: Instance, at: float) -> str:
    """Return the line of an instance that arrives."""
    if instance.state != ASSIGNED:
        return line(instance.state, at, instance.reason)
    ordinal = 0 if instance.selection is None else instance.selection.ordinal
    return line_of_attempt(at, instance.attempt, instance.host, instance.node, ordinal)


def with_line(new: str | sa.ColumnElement[str], most: int = MOST) -> sa.ColumnElement[str | None]:
    """Return the column ``history`` of an instance with a further line, for an UPDATE."""
    before = sa.func.coalesce(instances.c.history, "", type_=sa.Text)
    added = before + (sa.literal(new, sa.Text) if isinstance(new, str) else new)
    return sa.case((sa.func.length(before) < most, added), else_=instances.c.history)


def enter_state(
    connection: Connection,
    uuids: Sequence[str],
    state: str,
    at: float,
    reason: str | None = None,
    *,
    by: Requester | None = None,
) -> None:
    """Put instances, whose rows are locked, into a state that they may enter again and again."""
    if reason is not None:
        reason = clean_text(reason)
    told = line(state, at, reason, by=by)
    values = {
        "state": state,
        "reason": reason,
        "changed_at": at,
        "history": with_line(told, MOST_OF_GUESTS),
    }
    for some in in_batches(uuids):
        connection.execute(sa.update(instances).where(instances.c.uuid.in_(some)).values(**values))
        note_changes(connection, some, told)


def has_heard(connection: Connection, instance: str, word: str) -> bool:
    """Return whether the word of a uuid is in the history of an instance."""
    text = connection.execute(sa.select(instances.c.history).where(instances.c.uuid == instance)).scalar()
    return f'"word":"{word}"' in (text or "")


NEW_LINE = sa.bindparam("line", type_=sa.Text)
"""The line of `with_line`, as a parameter of statements that are built once."""


def keep_histories(connection: Connection, uuids: Sequence[str], at: float) -> None:
    """Keep the histories of instances that are removed at ``at``, in the same transaction."""
    # A database that was taken back to an earlier time forgets an instance twice.
    connection.execute(_PRUNE, {"uuids": uuids})
    told = line(GONE, at)
    connection.execute(_KEEP, {"uuids": uuids, "line": told, "at": at})
    note_changes(connection, uuids, told)


@transaction
def prune_past(connection: Connection, older_than: float) -> int:
    """Remove histories of instances that were forgotten before ``older_than`` (seconds since the epoch).

    Returns their number; if it is `PRUNED_AT_ONCE` there may be more.
    """
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    if old:
        connection.execute(_PRUNE, {"uuids": old})
    return len(old)


def transition_line(new: Transition) -> str:
    """Return the line of a transition. Parts of the reason that look like secrets are masked."""
    if new.reason is not None:
        new = msgspec.structs.replace(new, reason=clean_text(redacted_text(new.reason), MOST_OF_REASON))
    return _JSON.encode(new).decode() + "\n"


_OF_BOTH = ("uuid", "request_id", "run", "project_id", "user_id", "flavor")
_OF_PRESENT = sa.select(
    *(instances.c[name] for name in (*_OF_BOTH, "state", "history")),
).where(instances.c.uuid == sa.bindparam("of"))
_OF_PAST = sa.select(
    *(past_instances.c[name] for name in _OF_BOTH), sa.literal(GONE).label("state"), past_instances.c.history
).where(past_instances.c.uuid == sa.bindparam("of"))
_KEEP = sa.insert(past_instances).from_select(
    [*_OF_BOTH, "history", "ended_at"],
    sa.select(
        *(instances.c[name] for name in _OF_BOTH), with_line(NEW_LINE), sa.bindparam("at", type_=sa.Double)
    ).where(one_of(instances.c.uuid, "uuids")),
)
_OLD = (
    sa.select(past_instances.c.uuid)
    .where(past_instances.c.ended_at < sa.bindparam("before"))
    .order_by(past_instances.c.ended_at)
    .limit(PRUNED_AT_ONCE)
)
_PRUNE = sa.delete(past_instances).where(one_of(past_instances.c.uuid, "uuids"))


def _stored(row: Row) -> StoredHistory:
    text = row.history or ""
    what = f"history of instance {row.uuid}"
    found = [decoded(_LINE, each, None, what) for each in text.split("\n")[:-1]]
    transitions = tuple(each for each in found if each is not None)
    # An earlier version, which may work on the same tables, writes no transitions.
    begins = bool(transitions) and transitions[0].state in (ASSIGNED, ERROR)
    states = [each.state for each in transitions if each.state not in (RESHAPED, *OF_MOVES)]
    ends = bool(states) and states[-1] == row.state
    return StoredHistory(
        uuid=row.uuid,
        request_id=row.request_id,
        run=row.run,
        project_id=row.project_id,
        user_id=row.user_id,
        flavor=row.flavor,
        state=row.state,
        transitions=transitions,
        complete=begins and ends and len(transitions) == len(found) and len(text) < MOST_OF_GUESTS,
    )
