"""Moments of the past, as people name them: a commit, or a time."""

import math
import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.feed import ENDS
from roost.ledger.tables import commits
from roost.web.errors import BadRequest, NotFound

MOST_SKEWED: Final = 1000
"""Commits after the one that the bisection finds among which a later one with an earlier stamp is looked for:
the clocks of writers differ."""

_FIRST_SECONDS: Final = 1_000_000_000
"""Whole numbers from this one on (2001) are seconds, unless a commit with this number is kept."""


class PastMissing(NotFound):
    """The state of a moment cannot be shown. The text says why, and which moments can."""


class KeptCommits(NamedTuple):
    """The oldest and the newest kept commit, and their times in seconds since the epoch.

    With no commits both numbers are 0.
    """

    oldest: int
    oldest_at: float
    newest: int
    newest_at: float


class PastMoment(NamedTuple):
    """A version, and its time: that of its commit, or the time that was asked for.

    ``stamp``: the time of the commit, in seconds since the epoch; None if it is not kept.
    """

    version: int
    at: float
    stamp: float | None


class ShownMoment(NamedTuple):
    """The moment that a page shows, and those that it can show.

    ``moment``: None for the present. ``missing``: why the moment that was asked for cannot be shown.
    """

    kept: KeptCommits
    moment: PastMoment | None = None
    missing: str | None = None


def number_or_time(text: str) -> int | float:
    """Return the whole number that a text is, or the seconds since the epoch of a time.

    A time is ISO 8601, in UTC unless it has an offset, or seconds with a decimal point.

    Raises: `BadRequest` for any other text.
    """
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    try:
        seconds = float(text) if re.fullmatch(r"\d{1,12}\.\d*", text, re.ASCII) else _seconds(text)
    except (ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadRequest(
            f"at={text!r} is no moment: give the number of a commit, a time such as 2026-11-24T14:05 "
            "(UTC, or with an offset such as +01:00), or seconds since 1970"
        )
    return seconds


def moment_of(connection: Connection, text: str) -> PastMoment:
    """Return the moment that a text names. The connection's transaction must see one snapshot.

    Raises:
        BadRequest: the text names no moment, or one that is still to come.
        PastMissing: the commits of that moment are not kept.
    """
    asked, kept = number_or_time(text), kept_commits(connection)
    if isinstance(asked, int) and kept.oldest - 1 <= asked <= kept.newest:
        stamp = stamp_of(connection, asked)
        return PastMoment(asked, kept.oldest_at if stamp is None else stamp, stamp)
    if isinstance(asked, float) or asked >= _FIRST_SECONDS:
        return _of_time(connection, text, float(asked), kept)
    if asked > kept.newest:
        raise BadRequest(f"at={text!r}: there is no commit {asked} yet, the newest is {kept.newest}")
    raise not_kept(f"version {asked}", kept)


def kept_commits(connection: Connection) -> KeptCommits:
    """Return the range of commits that are kept."""
    oldest, newest = connection.execute(ENDS).one()
    if newest is None:
        return KeptCommits(0, 0.0, 0, 0.0)
    return KeptCommits(
        oldest, stamp_of(connection, oldest) or 0.0, newest, stamp_of(connection, newest) or 0.0
    )


def stamp_of(connection: Connection, version: int) -> float | None:
    """Return the time of a commit, in seconds since the epoch; None if it is not kept."""
    return connection.execute(_STAMP, {"seq": version}).scalar()


def version_at(connection: Connection, at: float, oldest: int, newest: int) -> int | None:
    """Return the largest commit whose time is not after ``at``; None if all of them are after it.

    The times of several writers do not rise from commit to commit, so the bisection ends at one of several
    commits that are not after ``at`` while the next is. The largest one is among those that follow, as long
    as no clock is off by more than the time of `MOST_SKEWED` commits. Why not the largest of all: a single
    commit of a writer whose clock is an hour slow would be the answer for the whole hour.
    """
    below, above = oldest - 1, newest + 1
    while above - below > 1:
        middle = (below + above) // 2
        stamp = stamp_of(connection, middle)
        if stamp is None or stamp <= at:
            below = middle
        else:
            above = middle
    later = connection.execute(_LATER, {"first": above, "last": below + MOST_SKEWED, "at": at}).scalar()
    found = below if later is None else int(later)
    return found if found >= oldest else None


def _of_time(connection: Connection, text: str, at: float, kept: KeptCommits) -> PastMoment:
    found = version_at(connection, at, kept.oldest, kept.newest) if kept.newest else None
    if found is None:
        raise not_kept(f"the state of {iso(at)}", kept)
    return PastMoment(found, at, stamp_of(connection, found))


def not_kept(what: str, kept: KeptCommits) -> PastMissing:
    """Return the error of a state that the kept commits do not lead to."""
    if not kept.newest:
        return PastMissing(f"{what} cannot be shown: no commit is kept")
    return PastMissing(
        f"{what} is not kept: the commits {kept.oldest} to {kept.newest} are, from {iso(kept.oldest_at)} to "
        f"{iso(kept.newest_at)} ([ledger] keep_commits, keep_days)"
    )


def iso(at: float) -> str:
    """Return a time as people read it, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(text: str) -> float:
    when = datetime.fromisoformat(text)
    return (when.replace(tzinfo=UTC) if when.tzinfo is None else when).timestamp()


_STAMP: Final = sa.select(commits.c.committed_at).where(
    commits.c.seq == sa.bindparam("seq", type_=sa.BigInteger)
)
_LATER: Final = sa.select(sa.func.max(commits.c.seq)).where(
    commits.c.seq.between(
        sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger)
    ),
    commits.c.committed_at <= sa.bindparam("at", type_=sa.Double),
)
