"""The status of a ledger: the position of its replica in the history, and its queue."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import commits


class History(msgspec.Struct, frozen=True):
    """The state of the history at one read of the database. Times are seconds since the epoch.

    - ``head``, ``oldest``: the numbers of the newest and of the oldest kept commit; 0 without commits.
    - ``missing_since``: the time of the oldest kept commit that the replica lacked; None: it lacked none.
    - ``seen_at``: the time of the read.
    """

    head: int
    oldest: int
    missing_since: float | None
    seen_at: float


class LedgerStatus(msgspec.Struct, frozen=True):
    """The status of a ledger. ``head`` and ``oldest`` are those of the last read of the database.

    - ``version``: the number of the newest commit that the replica includes.
    - ``head``, ``oldest``: the numbers of the newest and of the oldest kept commit.
    - ``lag_commits``: commits that the replica lacks.
    - ``lag_seconds``: the age of the oldest kept one of these; 0 if it lacks none.
    - ``looked_seconds``: seconds since the last read; None before the first one.
    - ``waiting_commands``: commands that wait for a commit, those of the batch under way among them.
    - ``providers``: resource providers in the fleet.
    """

    version: int
    head: int
    oldest: int
    lag_commits: int
    lag_seconds: float
    looked_seconds: float | None
    waiting_commands: int
    providers: int

    @property
    def trimmed_away(self) -> bool:
        """True if the replica's commit is trimmed, so that its fleet must be loaded anew."""
        return self.oldest > 1 and self.version < self.oldest


def look(connection: Connection, version: int, now: float) -> History:
    """Read the state of the history for a replica at ``version``. ``now``: seconds since the epoch."""
    head, oldest, missing_since = connection.execute(_LOOK, {"version": version}).one()
    return History(head or 0, oldest or 0, missing_since, now)


def status_of(
    version: int, providers: int, waiting_commands: int, history: History | None, now: float
) -> LedgerStatus:
    """Return the status of a replica at ``version``. ``history``: of the last read; None before the first."""
    seen = History(version, 0, None, now) if history is None else history
    lag = max(0, seen.head - version)
    since = seen.missing_since if lag else None
    return LedgerStatus(
        version=version,
        head=max(seen.head, version),
        oldest=seen.oldest,
        lag_commits=lag,
        lag_seconds=0.0 if since is None else max(0.0, now - since),
        looked_seconds=None if history is None else max(0.0, now - history.seen_at),
        waiting_commands=waiting_commands,
        providers=providers,
    )


_FIRST_MISSING = (
    sa.select(commits.c.committed_at)
    .where(commits.c.seq > sa.bindparam("version", type_=sa.BigInteger))
    .order_by(commits.c.seq)
    .limit(1)
)
_LOOK = sa.select(
    sa.select(sa.func.max(commits.c.seq)).scalar_subquery(),
    sa.select(sa.func.min(commits.c.seq)).scalar_subquery(),
    _FIRST_MISSING.scalar_subquery(),
)
