"""The writer: performs the effects of the commit protocol on a database, for one batch after another."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar

import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.ledger.append import NewCommit, append
from roost.ledger.commit_protocol import may_skip_head_check, transition
from roost.ledger.commit_states import Idle, State
from roost.ledger.commit_steps import (
    Answer,
    Answered,
    Append,
    AppendConflicted,
    Appended,
    AppendRefused,
    AppendUnknown,
    BatchReady,
    CheckHead,
    DeltaRead,
    Draft,
    Drafted,
    Effect,
    EffectFailed,
    Event,
    Fail,
    Finish,
    HeadChecked,
    Pause,
    Paused,
    Position,
    Probe,
    Probed,
    ReadDelta,
    RequestTurn,
    TurnRequested,
    TurnWithdrawn,
    VerifyHead,
    WithdrawTurn,
)
from roost.ledger.delta import newest
from roost.ledger.draft import CommitDraft, WaitingCommand, creates_all, draft
from roost.ledger.errors import SequenceTaken
from roost.ledger.feed import encode_changes
from roost.ledger.follower import Follower
from roost.ledger.holdings import Holdings
from roost.ledger.state import Command
from roost.ledger.step_metrics import count_step
from roost.ledger.turn_requests import request_turn, withdraw
from roost.process import tracing
from roost.process.logs import current_requests, serving
from roost.process.loop_watch import note_hold
from roost.process.metrics import catalogue as metrics
from roost.process.timed_steps import HELD_SECONDS
from roost.storage import DatabaseRefused, DatabaseUnavailable, OutcomeUnknown, driver_message

T = TypeVar("T")

BATCH_COMMANDS = 500
"""Most commands that share a commit. The others wait for the next commit."""

_LOG = structlog.get_logger()


class Writer:
    """Commits commands; all that wait at the same time share a commit.

    ``clock``: returns the times of commits, in seconds since the epoch. ``last_command``: the time at which a
    command last arrived or got its outcome, in monotonic seconds; 0 before the first one.
    """

    def __init__(self, follower: Follower, clock: Callable[[], float]) -> None:
        self._follower = follower
        self._clock = clock
        self._tokens = (f"{uuid.uuid4().hex[:20]}-{number}" for number in count(1))
        self._waiting: list[WaitingCommand[Any]] = []
        self._draining: asyncio.Task[None] | None = None
        self.last_command = 0.0

    @property
    def waiting_commands(self) -> int:
        """The number of commands without an outcome."""
        return len(self._waiting)

    async def execute(self, command: Command[T]) -> T:
        """Run a command and return its result once its changes are durable. Raises: see `Ledger.execute`."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiting = WaitingCommand(command, future, current_requests(), tracing.here())
        self._follower.deadlines.watch(future, lambda: self._late(waiting))
        self._waiting.append(waiting)
        self.last_command = time.monotonic()
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """Wait until all commands have their outcomes."""
        if self._draining is not None:
            # Shielded: if the caller is cancelled, the waiting ones still get their outcomes.
            await asyncio.shield(self._draining)

    def _late(self, waiting: WaitingCommand[Any]) -> DatabaseUnavailable:
        """Return the error of a command without an outcome at its deadline. If not begun, it never begins."""
        kind = OutcomeUnknown if waiting.begun else DatabaseUnavailable
        return kind(self._follower.database.no_answer())

    async def _drain(self) -> None:
        while self._waiting:
            async with self._follower.turn:
                # A command whose caller was answered at its deadline is not started.
                self._waiting = [waiting for waiting in self._waiting if not waiting.answered]
                if not self._waiting:
                    break
                commands = self._waiting[:BATCH_COMMANDS]
                for waiting in commands:
                    waiting.begun = True
                batch = _Batch(commands, self._follower, self._tokens, self._clock)
                # This task was created within one request, and the batch serves many.
                with (
                    serving(*(ids for waiting in commands for ids in waiting.requests)),
                    tracing.shared_span("ledger.commit", (waiting.place for waiting in commands)),
                ):
                    await self._run(batch, len(commands))
                del self._waiting[: batch.served]
                self.last_command = time.monotonic()
        self._draining = None

    async def _run(self, batch: "_Batch", commands: int) -> None:
        try:
            await batch.run()
        except Exception as error:
            _LOG.exception("a batch failed", commands=commands)
            batch.fail(error, commands)


class _Batch:
    """Performs the effects of the commit protocol for the commands of one batch."""

    def __init__(
        self,
        commands: list[WaitingCommand[Any]],
        follower: Follower,
        tokens: Iterator[str],
        clock: Callable[[], float],
    ) -> None:
        self._commands = commands
        self._follower = follower
        self._replica = follower.replica
        self._database = follower.database
        self._tokens = tokens
        self._clock = clock
        self._holdings = Holdings({}, {})
        self._draft: CommitDraft | None = None
        self._outcomes: dict[str, list[Any]] = {}
        self.served = 0

    async def run(self) -> None:
        """Drive the commit protocol to its end."""
        now, memory = time.monotonic(), self._follower.memory
        requires_new = may_skip_head_check(memory, now) and all(
            waiting.command.requires_new_consumers for waiting in self._commands
        )
        state: State = Idle(memory)
        event: Event = BatchReady(len(self._commands), requires_new)
        while True:
            state, effect = transition(state, event, now)
            if isinstance(effect, Finish):
                assert isinstance(state, Idle)
                self._follower.memory = state.memory
                return
            try:
                event = await self._perform(effect)
            except Exception as error:
                self._replica.discard()
                event = EffectFailed(error)
            except BaseException:
                self._replica.discard()
                raise
            before, now = now, time.monotonic()
            count_step(state, effect, event, now - before)

    async def _perform(self, effect: Effect) -> Event:
        match effect:
            case CheckHead(single):
                self._replica.discard()
                return await self._check_head(single)
            case VerifyHead(single):
                return await self._check_head(single)
            case ReadDelta(single):
                delta = await self._follower.follow(self._consumers(single))
                self._holdings = delta.holdings
                return DeltaRead(delta.tokens, delta.fleet is not None, delta.complete, delta.turn_requests)
            case Draft(single, unchecked):
                return self._run_commands(single, unchecked)
            case Append(token, withdrawn):
                return await self._append(token, withdrawn)
            case RequestTurn(request, withdrawn):
                await self._write_requests(request, withdrawn)
                return TurnRequested()
            case WithdrawTurn(withdrawn):
                await self._write_requests(None, withdrawn)
                return TurnWithdrawn()
            case Probe():
                return Probed(await self._answers())
            case Pause(seconds):
                await asyncio.sleep(seconds)
                return Paused()
            case Answer(token):
                self._answer(self._outcomes[token])
                return Answered()
            case Fail(error, number):
                self.fail(error, number)
                return Answered()
            case Finish():
                raise AssertionError("there is nothing to perform")

    def fail(self, error: Exception, number: int) -> None:
        """Give the first ``number`` commands an error. A command that already has an outcome keeps it."""
        self._answer([error] * number)

    def _answer(self, outcomes: list[Any]) -> None:
        for waiting, outcome in zip(self._commands, outcomes, strict=False):
            waiting.answer(outcome)
        self.served = len(outcomes)
        metrics.BATCH.observe(self.served)

    def _some(self, single: bool) -> list[WaitingCommand[Any]]:
        return self._commands[:1] if single else self._commands

    def _consumers(self, single: bool) -> list[str]:
        return [name for waiting in self._some(single) for name in waiting.command.consumers()]

    async def _check_head(self, single: bool) -> Event:
        head = await self._follower.check_head(self._consumers(single))
        self._holdings = head.holdings
        return HeadChecked(
            head.position, self._replica.position, head.turn_requested, bool(head.holdings.held)
        )

    def _run_commands(self, single: bool, unchecked: bool) -> Event:
        some = self._some(single)
        seq, holdings = self._replica.position.seq + 1, Holdings({}, {}) if unchecked else self._holdings
        drawn = self._draft = draft(some, self._replica.fleet, holdings, seq, self._clock())
        for waiting, seconds in zip(some, drawn.seconds, strict=False):
            if seconds > HELD_SECONDS:
                note_hold(type(waiting.command).__name__, seconds)
        self._replica.show(drawn.changes)
        token = next(self._tokens)
        self._outcomes[token] = drawn.outcomes
        return Drafted(token, bool(drawn.changes), unchecked and creates_all(some, drawn))

    async def _append(self, token: str, withdrawn: Sequence[str]) -> Event:
        """Make the draft durable. The fleet already includes its changes, unless a read has undone them."""
        with tracing.span("ledger.append"):
            return await self._appended(token, withdrawn)

    async def _appended(self, token: str, withdrawn: Sequence[str]) -> Event:
        drawn, after = self._draft, self._replica.position
        assert drawn is not None
        try:
            commit = NewCommit(drawn.seq, token, drawn.at, encode_changes(drawn.changes))
            await self._database.write(
                lambda connection: append(connection, after, commit, drawn.statements, withdrawn)
            )
        except (SequenceTaken, OutcomeUnknown, IntegrityError) as error:
            self._replica.discard()
            if isinstance(error, SequenceTaken):
                return AppendConflicted()
            if isinstance(error, OutcomeUnknown):
                return AppendUnknown(error)
            text = f"database {self._database}: {self._database.hide(driver_message(error))}"
            return AppendRefused(DatabaseRefused(text))
        self._replica.settle(Position(drawn.seq, token), drawn.changes, drawn.at, commit.changes)
        return Appended()

    async def _write_requests(self, request: str | None, withdrawn: Sequence[str]) -> None:
        at = self._clock()

        def write(connection: Connection) -> None:
            withdraw(connection, withdrawn)
            if request is not None:
                request_turn(connection, request, at)

        # A writer that cannot request its turn can still be first. A request that stays in the table expires
        # after `CommitLimits.turn` seconds.
        with contextlib.suppress(DatabaseUnavailable):
            await self._database.write(write)

    async def _answers(self) -> bool:
        """Return whether the database can be read."""
        try:
            await self._database.read(newest, by_key=True)
        except DatabaseUnavailable:
            if self._database.stopping:
                raise
            return False
        return True
