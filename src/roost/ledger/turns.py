"""Turns: a writer that others keep outrunning asks them, through the database, to let it go first.

Why it is not enough to try again: a number goes to whoever is back first with what it has validated on the
newest commit. A writer whose way to the database is longer than the others' whole round, from another
machine or over a slower node, comes too late every time; two of three equal ones can starve it as well. Seen
with three writers and one of them behind a slow wire: outrun 50 times in a row. So a writer that was outrun a
few times puts its name into a table that all writers read along with the commits, and who finds a name there
that is older than its own waits. It is a courtesy, and no lock: the key of the commits alone decides who is
next, and a writer that dies after it has asked holds up the others for `LET_SECONDS`, once.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import waiting_writers
from roost.storage import Database, DatabaseUnavailable

ASK_AFTER = 4
"""A writer asks when it was outrun so many times in a row, and again after as many times more."""

LET_SECONDS = 2.0
"""How long one that asks is waited for: many rounds even on a slow machine, and not for ever if it died."""

PAUSE = 0.005
"""Seconds between two looks whether it has had its turn."""

ANYBODY = sa.select(sa.func.count()).select_from(waiting_writers).scalar_subquery()
"""How many ask; to be read along with something else."""

_ASKING = sa.select(waiting_writers.c.writer).order_by(waiting_writers.c.asked_at, waiting_writers.c.writer)


def asking(connection: Connection) -> Sequence[str]:
    """The names of the writers that ask to go first, the oldest first."""
    return connection.execute(_ASKING).scalars().all()


class Turns:
    """One writer's asking, and its waiting for others that ask."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._outrun = 0
        self._name: str | None = None
        self._since: dict[str, float] = {}

    def others_first(self, names: Sequence[str]) -> bool:
        """Whether there is, among those who ask, one that we wait for now."""
        now = self._clock()
        self._since = {name: self._since.get(name, now) for name in names}
        before = names[: names.index(self._name)] if self._name in names else names
        return any(now - self._since[name] < LET_SECONDS for name in before)

    async def outrun(self, at: float) -> None:
        """Another writer was first. ``at``: seconds since the epoch."""
        self._outrun += 1
        if self._outrun % ASK_AFTER:
            return
        gone, name = self.leaving(), uuid.uuid4().hex

        def ask(connection: Connection) -> None:
            leave(connection, gone)
            connection.execute(sa.insert(waiting_writers), {"writer": name, "asked_at": at})

        self._name = name
        # Who cannot ask can still be first. (And if nobody knows whether it did, it will take its name out.)
        with contextlib.suppress(DatabaseUnavailable):
            await self._database.write(ask)

    def leaving(self) -> list[str]:
        """The names to take out of the table with the next append: our own, and those of who must be dead."""
        now = self._clock()
        names = [name for name, since in self._since.items() if now - since >= LET_SECONDS]
        return names if self._name is None else [*names, self._name]

    async def over(self, *, left: bool) -> None:
        """What was to be written is written or given up. ``left``: what `leaving` said has been done."""
        gone = [] if left or self._name is None else [self._name]
        self._outrun, self._name = 0, None
        if gone:
            # A name that stays behind is taken for that of a writer that died, which is bearable.
            with contextlib.suppress(DatabaseUnavailable):
                await self._database.write(lambda connection: leave(connection, gone))


def leave(connection: Connection, names: Sequence[str]) -> None:
    """Take names out of the table."""
    if names:
        connection.execute(sa.delete(waiting_writers).where(waiting_writers.c.writer.in_(names)))
