"""The newest rows of a log by time, read backwards: events of a cloud, and changes in a cell."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

LOOKED_AT_ONCE = 10_000
"""Rows that one read examines at most: a filter may let none of them pass."""


class NewestRows(NamedTuple):
    """Rows of a log, the newest first.

    ``back_to``: the time (seconds since the epoch) back to which the log was examined; rows of this time may
    have been left out. None: it was examined to its beginning, or as many rows as asked for were found.
    """

    rows: Sequence[sa.Row[Any]]
    back_to: float | None


def newest_rows(
    connection: Connection,
    table: sa.Table,
    columns: Sequence[sa.ColumnElement[Any]],
    *,
    until: float,
    since: float | None,
    most: int,
    wanted: Sequence[sa.ColumnElement[bool]],
) -> NewestRows:
    """Return up to ``most`` rows of a table that has the columns ``at`` and ``id``, the newest first.

    ``until`` and ``since``: the times of the last and of the first row that counts, both inclusive.
    """
    at, number = table.c.at, table.c.id
    within = [at <= until]
    if since is not None:
        within.append(at >= since)
    edge: float | None = None
    if wanted:
        last = sa.select(at).where(*within).order_by(at.desc()).offset(LOOKED_AT_ONCE - 1).limit(1)
        edge = connection.execute(last).scalar()
        if edge is not None:
            within.append(at >= edge)
    query = sa.select(at, *columns).where(*within, *wanted).order_by(at.desc(), number.desc()).limit(most)
    rows = connection.execute(query).all()
    return NewestRows(rows, None if len(rows) == most else edge)
