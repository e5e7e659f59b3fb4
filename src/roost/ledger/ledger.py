"""The ledger: one writer, one order, and a fleet kept at its head."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.fleet import Fleet
from roost.ledger.draft import Draft, Waiting, draft
from roost.ledger.errors import LedgerBusy, Outrun
from roost.ledger.holdings import Holdings
from roost.ledger.load import load
from roost.ledger.projection import Statement
from roost.ledger.state import Command
from roost.ledger.tables import SCHEMA, commits
from roost.ledger.tail import Look, News, Position, look, newest, read_news
from roost.ledger.trim import trim
from roost.ledger.turns import PAUSE, Turns, leave
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.change import AllocationsChanged, Change
from roost.storage import (
    AT_ONCE,
    Database,
    DatabaseUnavailable,
    OutcomeUnknown,
    gives_a_row,
    pipelined,
    table_refusing,
)

T = TypeVar("T")

BATCH_COMMANDS = 500
"""At most this many commands share a commit."""

TRIES = 50
"""How often a batch is run again because another writer was first."""

RECOVERY_SECONDS = 10.0
"""How long a batch whose append nobody knows the outcome of waits for the database to come back."""

RECOVERY_PAUSE = 0.1
"""Seconds between two looks whether it is back."""

SURE_SECONDS = 0.05
"""How long after a look that showed no other writer the next one may be left out."""

WARY_SECONDS = 0.25
"""How long none is left out after one that was missing."""

_THE_ONE_BEFORE = sa.select(commits.c.seq).where(
    commits.c.seq == sa.bindparam("seq", type_=sa.BigInteger), commits.c.writer == sa.bindparam("token")
)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[Change])


def decode_changes(text: str) -> list[Change]:
    """The changes of a commit, as its row holds them."""
    return _DECODER.decode(text)


class Ledger:
    """The commits of one database, and the fleet at their head. For use from one event loop.

    Open with `Ledger.open`. `execute` runs commands; `current` gives the fleet for reading.
    """

    def __init__(
        self, database: Database, fleet: Fleet, at: Position, clock: Callable[[], float] = time.time
    ) -> None:
        self.database = database
        self._fleet = fleet
        self._at = at
        self._clock = clock
        self._tokens = (f"{uuid.uuid4().hex[:20]}-{number}" for number in count(1))
        self._waiting: list[Waiting[Any]] = []
        self._draining: asyncio.Task[None] | None = None
        # What the fleet shows of a draft, and must not show to readers before it is durable: there is
        # something here only while somebody waits for its append, or for the look before it. No command runs
        # meanwhile, so none ever runs on a fleet whose tentative changes a reader has had taken back.
        self._tentative: list[Change] = []
        self._turns = Turns(database)
        # Held by whoever moves the fleet on: a batch from reading its consumers to the end of its commit, or
        # a catch-up. Between the two the fleet must not move under a command's feet.
        self._turn = asyncio.Lock()
        self._sure_until = self._wary_until = 0.0
        self._checking: asyncio.Task[None] | None = None
        self._next_check: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, database: Database, clock: Callable[[], float] = time.time) -> "Ledger":
        """A ledger over a database, loaded and with the standard names in it.

        Raises `StorageError` if the database cannot be used.
        """
        SCHEMA.prepare(database)
        fleet, at = await database.read(lambda connection: (load(connection), newest(connection)))
        ledger = cls(database, fleet, at, clock)
        await ledger.execute(RegisterStandardNames())
        return ledger

    async def close(self) -> None:
        """Finish what is under way. The database stays open: it is its owner's."""
        under_way = (self._draining, self._checking, self._next_check)
        # Their errors are for those who wait for them.
        await asyncio.gather(*(task for task in under_way if task is not None), return_exceptions=True)

    async def execute(self, command: Command[T]) -> T:
        """Run a command and return its result once its changes are durable.

        Commands that wait at the same time share one commit; one that is refused raises its own error
        and leaves the others alone.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(command, future))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    async def current(self) -> Fleet:
        """The fleet with everything that was committed, by anybody, before this call.

        Use it before the next ``await``. Reads that arrive during a check of the head share the next one; on
        SQLite each checks by itself, which takes no longer.
        """
        if self.database.is_sqlite:
            await self._check()
        elif self._checking is None:
            self._checking = asyncio.create_task(self._check_and_pass_on())
            await asyncio.shield(self._checking)
        else:
            if self._next_check is None:
                self._next_check = asyncio.create_task(self._check_after(self._checking))
            await asyncio.shield(self._next_check)
        self._show_what_is_durable()
        return self._fleet

    async def trim(self, keep: int, older_than: float) -> int:
        """Forget commits that are older than ``older_than`` (seconds since the epoch) or not among the
        newest ``keep``; the newest always stays. Returns how many went."""
        gone = 0
        while removed := await self.database.write(lambda connection: trim(connection, keep, older_than)):
            gone += removed
        return gone

    async def _check(self) -> None:
        if await self.database.look(newest) != self._at:
            async with self._turn:
                await self._catch_up()

    async def _check_and_pass_on(self) -> None:
        try:
            await self._check()
        finally:
            self._checking, self._next_check = self._next_check, None

    async def _check_after(self, running: "asyncio.Task[None]") -> None:
        await asyncio.wait([running])
        await self._check_and_pass_on()

    async def _catch_up(self, consumers: Sequence[str] = ()) -> News:
        """Bring the fleet to the head. The turn must be held."""
        seen = await self._look(consumers)
        if seen is not None and seen.at == self._at and not seen.asked:
            self._sure_until = time.monotonic() + SURE_SECONDS
            return News(seen.at, (), None, seen.holdings, ())
        self._sure_until = 0.0
        since = self._at
        news = await self.database.read(lambda connection: read_news(connection, since, consumers))
        if news.fleet is not None:
            self._fleet = news.fleet
        else:
            for row in news.newer:
                self._fleet.advance(row.seq, decode_changes(row.changes), row.committed_at)
        self._at = news.at
        return news

    async def _look(self, consumers: Sequence[str]) -> Look | None:
        """The head and some consumers; None if they are too many for a look."""
        if len(consumers) > AT_ONCE:
            return None
        return await self.database.look(lambda connection: look(connection, consumers))

    async def _drain(self) -> None:
        while self._waiting:
            async with self._turn:
                batch = self._waiting[:BATCH_COMMANDS]
                try:
                    served = await self._serve(batch)
                except Exception as error:
                    for waiting in batch:
                        waiting.answer(error)
                    served = len(batch)
                del self._waiting[:served]
        self._draining = None

    async def _serve(self, batch: list[Waiting[Any]]) -> int:
        try:
            return await self._commit(batch)
        finally:
            await self._turns.over(left=False)

    async def _commit(self, batch: list[Waiting[Any]]) -> int:
        """Commit as many of the batch as time allows; returns how many were served.

        An append whose outcome is unknown (the database went away during its COMMIT) is neither repeated nor
        given up at once: either would be wrong half of the time. The batch goes round again. If the commit
        is there now, its token tells, and the commands have their answers. If not, they are run and
        appended again under the same number, of which only one can go in; should the server, not knowing
        that nobody waits, still commit the first one, the second is outrun by it, and the token tells.
        """
        alone = False
        doubtful: dict[str | None, list[Any]] = {}
        tries = 0
        while tries < TRIES:
            some = batch[:1] if alone else batch
            blind = not tries and self._sees_nobody(some)
            # At the head even if nobody will append: a refusal is an answer too, and must not come from a
            # state before what the client knows to be done.
            news = (
                News(self._at, (), None, Holdings({}, {}), ())
                if blind
                else await self._catch_up(_consumers(some))
            )
            for row in news.newer:
                if row.writer in doubtful:
                    return _answer(batch, doubtful[row.writer])
            if doubtful and news.fleet is not None:
                raise OutcomeUnknown("the commits that would tell what became of this one are gone")
            if not blind and self._turns.others_first(news.asking):
                await asyncio.sleep(PAUSE)
                continue
            tries += 1
            drawn = draft(some, self._fleet, news.holdings, self._at.seq + 1, self._clock())
            self._tentative = drawn.changes
            if blind and not _all_new(some, drawn) and not await self._nobody_was_there(some):
                self._show_what_is_durable()
                self._look_again()
                continue
            if drawn.changes:
                token = next(self._tokens)
                try:
                    await self._append(token, drawn)
                except Outrun:
                    self._look_again()
                    await self._turns.outrun(drawn.at)
                    continue
                except OutcomeUnknown as unknown:
                    doubtful[token] = drawn.outcomes
                    await self._recovered(unknown)
                    continue
                except IntegrityError:
                    if blind:
                        self._look_again()
                        continue
                    # The net effect of several commands may break a rule that none of them breaks in its
                    # turn (names swapped in a circle): let each have a commit of its own.
                    if len(some) == 1:
                        raise
                    alone = True
                    continue
            return _answer(batch, drawn.outcomes)
        raise LedgerBusy(f"other writers were first {TRIES} times in a row; try again")

    def _sees_nobody(self, batch: list[Waiting[Any]]) -> bool:
        """Whether a batch may be drafted without a look at the database.

        What the look is for: to follow other writers, to let them go first, and to see what the batch's
        consumers hold. The first shows at the append, whose number another writer has taken then; the second
        waits for `SURE_SECONDS`; and that consumers are new shows at the append as well, if all of them are
        written (`_all_new`). If not, as when one of the claims is refused, there is a look after all. So
        nothing is answered that would have been answered otherwise after a look.
        """
        now = time.monotonic()
        return self._wary_until < now < self._sure_until and all(
            waiting.command.requires_new_consumers for waiting in batch
        )

    async def _nobody_was_there(self, batch: list[Waiting[Any]]) -> bool:
        """Whether a look before the batch was drafted would have shown no writer and no consumer."""
        try:
            seen = await self._look(_consumers(batch))
        except BaseException:
            self._show_what_is_durable()
            raise
        return seen is not None and seen.at == self._at and not seen.asked and not seen.holdings.held

    def _look_again(self) -> None:
        """A look was missing: leave out none for a while."""
        self._sure_until = 0.0
        self._wary_until = time.monotonic() + WARY_SECONDS

    async def _append(self, token: str, drawn: Draft) -> None:
        """Make a draft durable. The fleet shows its changes already, unless somebody reads meanwhile."""
        try:
            row: dict[str, object] = {
                "seq": drawn.seq,
                "writer": token,
                "committed_at": drawn.at,
                "changes": _ENCODER.encode(drawn.changes).decode(),
            }
            gone = self._turns.leaving()
            after = self._at
            await self.database.write(
                lambda connection: _write(connection, after, row, drawn.statements, gone)
            )
        except BaseException:
            self._sure_until = 0.0
            self._show_what_is_durable()
            raise
        if self._tentative:
            self._tentative = []
            self._fleet.settle(drawn.seq, drawn.changes, drawn.at)
        else:
            self._fleet.advance(drawn.seq, drawn.changes, drawn.at)
        self._at = Position(drawn.seq, token)
        await self._turns.over(left=True)

    def _show_what_is_durable(self) -> None:
        """Take back what the fleet shows of an append under way."""
        self._fleet.undo(self._tentative)
        self._tentative = []

    async def _recovered(self, unknown: OutcomeUnknown) -> None:
        """Wait until the database answers again. Raises ``unknown`` if it does not for too long."""
        until = time.monotonic() + RECOVERY_SECONDS
        while time.monotonic() < until:
            try:
                await self.database.read(newest)
                return
            except DatabaseUnavailable:
                await asyncio.sleep(RECOVERY_PAUSE)
        raise unknown


def _answer(batch: list[Waiting[Any]], outcomes: list[Any]) -> int:
    """Answer the first commands of a batch; returns how many."""
    for waiting, outcome in zip(batch, outcomes, strict=False):
        waiting.answer(outcome)
    return len(outcomes)


def _consumers(batch: list[Waiting[Any]]) -> list[str]:
    """All that the commands of a batch name."""
    return [uuid for waiting in batch for uuid in waiting.command.consumers()]


def _all_new(batch: list[Waiting[Any]], drawn: Draft) -> bool:
    """Whether all consumers of the commands that a draft serves are written as new ones."""
    written = {change.consumer for change in drawn.changes if isinstance(change, AllocationsChanged)}
    return all(
        not isinstance(outcome, Exception) and written.issuperset(waiting.command.consumers())
        for waiting, outcome in zip(batch, drawn.outcomes, strict=False)
    )


def _write(
    connection: Connection,
    after: Position,
    row: dict[str, object],
    statements: Sequence[Statement],
    gone: Sequence[str],
) -> None:
    """Append a commit to the one it was drafted ``after``. Raises `Outrun` if that is not the last one."""
    try:
        with pipelined(connection):
            try:
                connection.execute(sa.insert(commits), row)
            except IntegrityError as error:
                raise Outrun from error
            # That the number was free is not all: others may have had it and trimmed it, or a standby that
            # took over may have another history.
            follows = gives_a_row(connection, _THE_ONE_BEFORE, after._asdict())
            for statement, rows in statements:
                statement.run(connection, rows)
            leave(connection, gone)
        if after.seq and not follows():
            raise Outrun
    except IntegrityError as error:
        # Where statements do not wait for answers, it comes at the end of all.
        if table_refusing(error) == commits.name:
            raise Outrun from error
        raise
