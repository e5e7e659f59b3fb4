"""A simulated process: a replica, readers, and a writer that performs the effects of the commit protocol."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from ledger.simulation.loop import Gate, Lock, Loop, Process
from ledger.simulation.model import ModelFleet, Refusal
from ledger.simulation.server import BrokenRule, Conflict, ConnectionLost, Draft, Server
from roost.ledger import commit_steps as steps
from roost.ledger.commit_protocol import head_checked, may_skip_head_check, transition
from roost.ledger.commit_states import CommitLimits, Idle, Memory
from roost.ledger.delta import SMALL_COMMIT, PageLimits, read_delta
from roost.ledger.holdings import Holdings
from roost.ledger.replica import Replica
from roost.ledger.state import Command, State
from roost.storage import DatabaseUnavailable, OutcomeUnknown

BATCH_COMMANDS = 8


class Integrity(Exception):
    """A rule of the tables was broken, as the writer's caller is told."""


class Link(NamedTuple):
    """A process's way to the database. ``delay``: seconds there or back. The others: chances of faults."""

    delay: float = 0.001
    away: float = 0.0
    cut_before: float = 0.0
    cut_after: float = 0.0
    late: float = 0.0


class Defects(NamedTuple):
    """What a planted defect replaces in a process."""

    transition: Callable[..., Any] = transition
    discards: bool = True
    takes_positions_by_number: bool = False


class Call:
    """A command and what became of it. ``submitted_at``: the head's number and timeline then."""

    def __init__(self, command: Command[Any], submitted_at: tuple[int, int], loop: Loop) -> None:
        self.command = command
        self.submitted_at = submitted_at
        self.answered_at: tuple[int, int] = (0, 0)
        self.outcome: Any = None
        self.answered = Gate(loop)


class Node:
    """One process of the system, with its replica."""

    def __init__(
        self,
        name: str,
        loop: Loop,
        server: Server,
        link: Link,
        random: Random,
        limits: CommitLimits,
        defects: Defects,
    ) -> None:
        self.name = name
        self.loop = loop
        self.server = server
        self.link = link
        self.random = random
        self.defects = defects
        self.memory = Memory(limits)
        fleet: Any = ModelFleet()
        follow = SMALL_COMMIT * random.choice((4, 40, 1000))
        self.replica = Replica(fleet, steps.Position(0, None), follow)
        self.turn = Lock(loop)
        # A replica that is far away would not come near the head by small pages.
        self.page = PageLimits(100 if link.delay > 0.01 else random.choice((2, 5, 100)), 10**9)
        self.waiting: list[Call] = []
        self.draining = False
        self.most_attempts = 0
        self._numbers = 0

    # Commands

    def execute(self, command: Command[Any]) -> Call:
        """Hand in a command."""
        call = Call(command, (len(self.server.history), self.server.timeline), self.loop)
        self.waiting.append(call)
        if not self.draining:
            self.draining = True
            self.loop.spawn(self._drain())
        return call

    def _drain(self) -> Process:
        while self.waiting:
            yield from self.turn.acquire()
            batch = _Batch(self, self.waiting[:BATCH_COMMANDS])
            yield from batch.run()
            del self.waiting[: batch.served]
            self.turn.release()
        self.draining = False

    def token(self) -> str:
        self._numbers += 1
        return f"{self.name}-{self._numbers}"

    # Reads

    def current(self) -> Process:
        """As `roost.ledger.follower.Follower.current`. Returns version, position and what is in use."""
        position = yield from self.read(lambda: self.server.position)
        complete = self.same(position, self.replica.position)
        while not complete:
            yield from self.turn.acquire()
            try:
                head, requested = yield from self.read(self.server.head)
                unchanged = self.same(head, self.replica.position) and not requested
                self.memory = head_checked(self.memory, unchanged, self.loop.now)
                complete = unchanged or (yield from self.read_page(())).complete
            finally:
                self.turn.release()
        if self.defects.discards:
            self.replica.discard()
        fleet: Any = self.replica.fleet
        return fleet.version, self.replica.position, fleet.facts()

    def read_page(self, consumers: Sequence[str]) -> Process:
        """Read a page of the delta, and follow it."""
        since = self.replica.position
        if self.defects.takes_positions_by_number:
            found = self.server.commits_from(since.seq, 1)
            since = steps.Position(since.seq, found[0].writer) if found else since
        follow = self.replica.follow_limit
        delta = yield from self.read(lambda: read_delta(self.server, since, consumers, follow, self.page))
        self.replica.follow(delta)
        return delta

    def same(self, one: steps.Position, other: steps.Position) -> bool:
        return one.seq == other.seq if self.defects.takes_positions_by_number else one == other

    # The way to the database

    def read(self, work: Callable[[], Any]) -> Process:
        """Read from the server. Raises: `DatabaseUnavailable`."""
        yield self._delay()
        if self._happens(self.link.away):
            raise DatabaseUnavailable("away")
        found = work()
        yield self._delay()
        return found

    def append(self, draft: Draft) -> Process:
        """Append at the server. Raises: `Conflict`, `BrokenRule`, `DatabaseUnavailable`, `OutcomeUnknown`."""
        yield self._delay()
        if self._happens(self.link.away):
            raise DatabaseUnavailable("away")
        if self._happens(self.link.cut_before):
            raise OutcomeUnknown("cut off before the server had it")
        if self._happens(self.link.late):
            self.loop.spawn(self._append_late(draft))
            yield self._delay()
            raise OutcomeUnknown("cut off; the server has it, and commits it later")
        try:
            yield from self.server.append(draft, self.random.uniform(0.0, 0.004))
        except ConnectionLost as error:
            raise OutcomeUnknown("the server restarted") from error
        yield self._delay()
        if self._happens(self.link.cut_after):
            raise OutcomeUnknown("cut off after the server had committed it")

    def _append_late(self, draft: Draft) -> Process:
        incarnation = self.server.incarnation
        yield self.random.choice((0.0, 0.01, 0.1))
        if incarnation != self.server.incarnation:
            return  # the connection ended with the server
        try:
            yield from self.server.append(draft, self.random.uniform(0.0, 0.1))
        except (Conflict, BrokenRule, ConnectionLost):
            return

    def _delay(self) -> float:
        return self.link.delay * self.random.uniform(0.5, 1.5)

    def _happens(self, chance: float) -> bool:
        return chance > 0.0 and self.random.random() < chance


class _Batch:
    """The effects of one batch, performed: `roost.ledger.writer` in the simulated world."""

    def __init__(self, process: Node, calls: list[Call]) -> None:
        self.process = process
        self.calls = calls
        self.holdings = Holdings({}, {})
        self.changes: list[Any] = []
        self.outcomes: dict[str, list[Any]] = {}
        self.served = 0

    def run(self) -> Process:
        process = self.process
        now = process.loop.now
        requires_new = may_skip_head_check(process.memory, now) and all(
            call.command.requires_new_consumers for call in self.calls
        )
        state: Any = Idle(process.memory)
        event: Any = steps.BatchReady(len(self.calls), requires_new)
        while True:
            state, effect = process.defects.transition(state, event, process.loop.now)
            if isinstance(effect, steps.Finish):
                process.memory = state.memory
                return
            process.most_attempts = max(process.most_attempts, state.batch.attempts)
            try:
                event = yield from self._perform(effect)
            except (DatabaseUnavailable, Integrity) as error:
                process.replica.discard()
                event = steps.EffectFailed(error)

    def _perform(self, effect: Any) -> Process:
        process, replica = self.process, self.process.replica
        match effect:
            case steps.CheckHead(single):
                replica.discard()
                return (yield from self._check_head(single))
            case steps.VerifyHead(single):
                return (yield from self._check_head(single))
            case steps.ReadDelta(single):
                delta = yield from process.read_page(self._consumers(single))
                self.holdings = delta.holdings
                return steps.DeltaRead(
                    delta.tokens, delta.fleet is not None, delta.complete, delta.turn_requests
                )
            case steps.Draft(single, unchecked):
                return self._run_commands(single, unchecked)
            case steps.Append(token, withdrawn):
                return (yield from self._append(token, withdrawn))
            case steps.RequestTurn(request, withdrawn):
                yield from self._write_requests(request, withdrawn)
                return steps.TurnRequested()
            case steps.WithdrawTurn(withdrawn):
                yield from self._write_requests(None, withdrawn)
                return steps.TurnWithdrawn()
            case steps.Probe():
                try:
                    yield from process.read(lambda: None)
                except DatabaseUnavailable:
                    return steps.Probed(False)
                return steps.Probed(True)
            case steps.Pause(seconds):
                yield seconds
                return steps.Paused()
            case steps.Answer(token):
                self._answer(self.outcomes[token])
                return steps.Answered()
            case steps.Fail(error, count):
                self._answer([error] * count)
                return steps.Answered()
        raise AssertionError(effect)

    def _answer(self, outcomes: list[Any]) -> None:
        server = self.process.server
        for call, outcome in zip(self.calls, outcomes, strict=False):
            call.outcome, call.answered_at = outcome, (len(server.history), server.timeline)
            call.answered.open()
        self.served = len(outcomes)

    def _consumers(self, single: bool) -> list[str]:
        some = self.calls[:1] if single else self.calls
        return [name for call in some for name in call.command.consumers()]

    def _check_head(self, single: bool) -> Process:
        process, server = self.process, self.process.server
        names = self._consumers(single)
        (head, requested), self.holdings = yield from process.read(
            lambda: (server.head(), server.holdings(names))
        )
        position = process.replica.position
        if process.same(head, position):
            position = head
        return steps.HeadChecked(head, position, requested, bool(self.holdings.held))

    def _run_commands(self, single: bool, unchecked: bool) -> Any:
        process, outcomes = self.process, []
        state = State(process.replica.fleet, {} if unchecked else dict(self.holdings.held), 0.0)
        some = self.calls[:1] if single else self.calls
        # At times a batch is cut short, as one is that takes too long.
        some = some[: process.random.choice((1, BATCH_COMMANDS, BATCH_COMMANDS, BATCH_COMMANDS))]
        for call in some:
            mark = len(state.changes)
            state.name(call.command.consumers())
            try:
                outcomes.append(call.command.run(state))
            except Refusal as refusal:
                state.take_back(mark)
                outcomes.append(refusal)
        self.changes = state.changes
        process.replica.show(state.changes)
        token = process.token()
        self.outcomes[token] = outcomes
        created = {change.consumer for change in state.changes}
        all_created = all(
            not isinstance(outcome, Exception) and created.issuperset(call.command.consumers())
            for call, outcome in zip(some, outcomes, strict=True)
        )
        return steps.Drafted(token, bool(state.changes), unchecked and all_created)

    def _append(self, token: str, withdrawn: Sequence[str]) -> Process:
        process, replica = self.process, self.process.replica
        try:
            yield from process.append(Draft(replica.position, token, self.changes, withdrawn))
        except Conflict:
            replica.discard()
            return steps.AppendConflicted()
        except BrokenRule:
            replica.discard()
            return steps.AppendRefused(Integrity("a rule was broken"))
        except OutcomeUnknown as error:
            replica.discard()
            return steps.AppendUnknown(error)
        replica.settle(steps.Position(replica.position.seq + 1, token), self.changes, process.loop.now, "")
        return steps.Appended()

    def _write_requests(self, request: str | None, withdrawn: Sequence[str]) -> Process:
        try:
            yield from self.process.read(lambda: self.process.server.write_requests(request, withdrawn))
        except DatabaseUnavailable:
            return
