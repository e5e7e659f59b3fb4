"""Keeps the index up to date: it follows the ledger, and fills in older commits from the table, newest first.

The index belongs to one thread. The event loop hands it commits, and never waits for it. Older commits are
read in small steps with pauses, so that filling takes a share of a core.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.dashboard.past.index_file import DamagedFile
from roost.dashboard.past.index_folder import IndexFolder
from roost.dashboard.past.index_view import IndexView
from roost.dashboard.past.past_index import RANGE_COMMITS, PastIndex, Span
from roost.ledger import Ledger
from roost.ledger.feed import Commit
from roost.ledger.replica import CommitTap
from roost.ledger.tables import commits
from roost.process.lane import Lane
from roost.storage import NAMES_PER_STATEMENT, StorageError, one_of, read_identity

T = TypeVar("T")

FILL_COMMITS: Final = 500
"""Older commits that one step reads: some 15 ms of the index's thread."""

RETRY_SECONDS: Final = 5.0
"""Seconds after which the keeper begins anew when the database or the folder failed."""

MOST_CHARACTERS: Final = 64 * 1024 * 1024
"""Characters of commits that wait for the index. Beyond, they are read from the table instead."""

_log = structlog.get_logger()


class KeeperPace(NamedTuple):
    """The pace of a keeper. ``share``: of a core, that it takes to read older commits.

    Seconds between two looks for new commits (``follow``), and for those that the ledger keeps no more.
    """

    follow: float = 1.0
    trim: float = 60.0
    share: float = 0.25


DEFAULT_PACE: Final = KeeperPace()


class Unconnected(Exception):
    """New commits do not follow those that the index has."""


class IndexKeeper:
    """The keeper of an index in a folder, for use from one event loop. `run` must run.

    ``most_bytes``: of all files. ``size``: commits of a file. ``sleep``: as `asyncio.sleep`.
    """

    def __init__(
        self,
        ledger: Ledger,
        folder: Path,
        most_bytes: int,
        size: int = RANGE_COMMITS,
        pace: KeeperPace = DEFAULT_PACE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ledger = ledger
        self._index = PastIndex(IndexFolder(folder), size)
        self._most_bytes = most_bytes
        self._pace = pace
        self._sleep = sleep
        self._lane = Lane("index-of-the-past")
        self._tap: CommitTap | None = None
        self._waiting: deque[Commit] = deque()
        self._next = self._oldest = 0
        self._floor = 0
        self._history = ""
        self.filling = True
        """True while older commits are still to be read."""

    async def run(self) -> None:
        """Keep the index until cancelled. Failures are logged, and the index is made anew from its files."""
        while True:
            try:
                await self._keep()
            except (StorageError, OSError, DamagedFile, Unconnected) as error:
                _log.warning("the index of the past waits", error=str(error))
            except Exception:
                _log.exception("a defect keeps the index of the past from being made; it begins anew")
            await self._sleep(RETRY_SECONDS)

    async def close(self) -> None:
        """End the index's thread."""
        await self._lane.close(None)

    async def with_view(self, use: Callable[[IndexView], T]) -> T:
        """Call a function with the index, which has at least the commits of the ledger's fleet of now.

        The function runs in the thread of the index; the view may be used elsewhere afterwards.
        """
        self._take()
        return await self._lane.run(lambda: use(self._added()))

    async def run_in_thread(self, call: Callable[[], T]) -> T:
        """Call a function in the thread of the index."""
        return await self._lane.run(call)

    async def _keep(self) -> None:
        """Load the files, and keep the index until the newest commits do not follow those before any more."""
        history = await self._ledger.database.read(lambda connection: str(read_identity(connection)))
        self._history, self._floor = history, 0
        fleet = await self._ledger.current()
        newest, tap = fleet.version, self._ledger.tap()
        try:
            await self._drop_others(await self._lane.run(lambda: self._index.load(history)))
            await self._bound()
            await self._keep_on(newest, tap)
        finally:
            self._tap = None
            tap.close()

    async def _keep_on(self, newest: int, tap: CommitTap) -> None:
        """Keep the index that has its files. ``tap``: of the commits after ``newest``."""
        self._waiting.clear()
        self._tap, self._next = tap, newest + 1
        self._oldest = await self._oldest_kept()
        self.filling = True
        followed = trimmed = time.monotonic()
        while not tap.broken and tap.characters < MOST_CHARACTERS:
            began = time.monotonic()
            if began - followed >= self._pace.follow:
                followed = began
                await self._follow()
            if began - trimmed >= self._pace.trim:
                trimmed = began
                self._oldest = await self._oldest_kept()
                await self._lane.run(partial(self._index.drop_before, self._oldest))
            if self.filling:
                began = time.monotonic()
                self.filling = await self._fill(newest)
                await self._sleep((time.monotonic() - began) * (1 / self._pace.share - 1))
            else:
                await self._sleep(self._pace.follow)

    async def _drop_others(self, stored: dict[int, tuple[int, str]]) -> None:
        """Remove the files whose last commit is not the database's: it was taken back to an earlier time."""
        lasts = [last for last, _ in stored.values()]
        tokens: dict[int, str] = {}
        for at in range(0, len(lasts), NAMES_PER_STATEMENT):
            tokens |= await self._tokens(lasts[at : at + NAMES_PER_STATEMENT])
        for number, (last, token) in stored.items():
            if tokens.get(last) != token:
                await self._lane.run(partial(self._index.drop, number))

    async def _follow(self) -> None:
        """Add new commits."""
        await self._ledger.current()
        self._take()
        await self._lane.run(self._added)
        await self._store()

    async def _fill(self, newest: int) -> bool:
        """Read some older commits, the newest ones first. Returns whether there may be more."""
        oldest = max(self._oldest, self._floor)
        span = await self._lane.run(lambda: self._index.missing(oldest, newest, FILL_COMMITS))
        if span is None:
            await self._store()
            return False
        found = await self._ledger.database.read(lambda connection: _read(connection, span))
        if not found or found[-1].seq != span.last:
            self._floor = span.last + 1
            return True
        try:
            await self._lane.run(lambda: self._index.add(found))
        except msgspec.MsgspecError as error:
            _log.warning("the index of the past ends at a commit that is damaged", error=str(error))
            self._floor = span.last + 1
        await self._store()
        return True

    async def _store(self) -> None:
        """Write the ranges that are whole, and remove the oldest ones if there are too many."""
        oldest = max(self._oldest, self._floor)
        for span in await self._lane.run(lambda: self._index.complete(oldest)):
            token = (await self._tokens([span.last])).get(span.last)
            if token is not None:
                await self._lane.run(partial(self._index.store, span.last, self._history, token))
            await self._bound()

    async def _bound(self) -> None:
        first = await self._lane.run(lambda: self._index.drop_beyond(self._most_bytes))
        self._floor = max(self._floor, first)

    async def _oldest_kept(self) -> int:
        return await self._ledger.database.read(lambda connection: connection.execute(_OLDEST).scalar() or 1)

    async def _tokens(self, seqs: Sequence[int]) -> dict[int, str]:
        return await self._ledger.database.read(
            lambda connection: {row.seq: row.writer for row in connection.execute(_TOKENS, {"seqs": seqs})}
        )

    def _take(self) -> None:
        """Let the commits wait that the index lacks to be where the ledger's fleet is."""
        if self._tap is not None and not self._tap.broken:
            self._waiting.extend(self._tap.take())

    def _added(self) -> IndexView:
        """Add the commits that wait, in the index's thread, and return the view."""
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if waiting:
            if waiting[0].seq != self._next:
                raise Unconnected(f"commit {waiting[0].seq} does not follow commit {self._next - 1}")
            self._next = waiting[-1].seq + 1
            self._index.add(waiting)
        return self._index.view()


def _read(connection: Connection, span: Span) -> list[Commit]:
    """Return the commits of a span without a gap before the last one: those before it are not kept."""
    found = [Commit(*row) for row in connection.execute(_SPAN, {"first": span.first, "last": span.last})]
    for at in range(len(found) - 1, 0, -1):
        if found[at - 1].seq != found[at].seq - 1:
            return found[at:]
    return found


_OLDEST: Final = sa.select(sa.func.min(commits.c.seq))
_TOKENS: Final = sa.select(commits.c.seq, commits.c.writer).where(one_of(commits.c.seq, "seqs"))
_SPAN: Final = (
    sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes)
    .where(
        commits.c.seq.between(
            sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger)
        )
    )
    .order_by(commits.c.seq)
)
