"""The simulated database: commits under unique numbers, consumers with unique names, and turn requests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ledger.simulation.loop import Gate, Loop, Process
from ledger.simulation.model import POISON, TOUCHY, ModelFleet
from roost.ledger.commit_steps import Position
from roost.ledger.delta import NOWHERE, CommitRow
from roost.ledger.feed import decode_changes, encode_changes
from roost.ledger.holdings import Holdings
from roost.ledger.state import Held
from roost.model.change import AllocationsChanged


class Conflict(Exception):
    """The number is taken, or the commit before is another one."""


class BrokenRule(Exception):
    """A rule of the tables."""


class ConnectionLost(Exception):
    """The server restarted."""


class Draft(NamedTuple):
    """What a writer appends."""

    after: Position
    token: str
    changes: Sequence[AllocationsChanged]
    withdrawn: Sequence[str]


class Server:
    """``history``: all commits of the present timeline. ``lost``: commits of timelines that were given up.

    ``rows_lock``: whether the second writer of a number waits for the first one, as on PostgreSQL; if not,
    it finds out at its commit, as on Galera. ``checks_predecessor`` is there to be turned off.
    """

    def __init__(self, loop: Loop, rows_lock: bool, checks_predecessor: bool = True) -> None:
        self._loop = loop
        self._rows_lock = rows_lock
        self._checks_predecessor = checks_predecessor
        self._locks: dict[int, Gate] = {}
        self.incarnation = 0
        self.timeline = 0
        self.history: list[CommitRow] = []
        self.lost: list[CommitRow] = []
        self.oldest = 1
        self.held: dict[str, Held] = {}
        self.fleet = ModelFleet()
        self.requests: list[str] = []
        self.states: dict[str, dict[str, int]] = {}
        """What was in use after each commit, by its token."""

    # Reading: a snapshot, see `roost.ledger.delta.LedgerSnapshot`

    @property
    def position(self) -> Position:
        return Position(self.history[-1].seq, self.history[-1].writer) if self.history else NOWHERE

    def head(self) -> tuple[Position, bool]:
        return self.position, bool(self.requests)

    def commits_from(self, seq: int, count: int) -> list[CommitRow]:
        first = max(seq, self.oldest) - 1
        return self.history[first : first + count]

    def turn_requests(self) -> list[str]:
        return self.requests.copy()

    def holdings(self, uuids: Sequence[str]) -> Holdings:
        held = {uuid: self.held[uuid] for uuid in uuids if uuid in self.held}
        return Holdings(held, dict.fromkeys(held, 0))

    def load(self) -> Any:
        fleet = ModelFleet()
        fleet.used, fleet.version = self.fleet.used.copy(), self.fleet.version
        fleet.members, fleet.cpus = self.fleet.members.copy(), self.fleet.cpus.copy()
        return fleet

    # Writing

    def append(self, draft: Draft, sync_seconds: float) -> Process:
        """One transaction. Raises: `Conflict`, `BrokenRule`, `ConnectionLost`."""
        seq, incarnation = draft.after.seq + 1, self.incarnation
        if self._rows_lock:
            while (gate := self._locks.get(seq)) is not None:
                yield gate
                self._check_alive(incarnation)
            self._judge(draft)
            gate = self._locks[seq] = Gate(self._loop)
            try:
                yield sync_seconds
                self._check_alive(incarnation)
                self._commit(draft)
            finally:
                self._locks.pop(seq, None)
                gate.open()
        else:
            self._judge(draft)
            yield sync_seconds
            self._check_alive(incarnation)
            self._judge(draft)
            self._commit(draft)

    def write_requests(self, request: str | None, withdrawn: Sequence[str]) -> None:
        """Withdraw turn requests, and add one."""
        self.requests = [each for each in self.requests if each not in withdrawn]
        if request is not None:
            self.requests.append(request)

    def trim(self, keep: int) -> None:
        """Remove all but the newest commits."""
        self.oldest = max(self.oldest, len(self.history) - max(keep, 1) + 1)

    def restart(self) -> None:
        """Abort the transactions that are under way."""
        self.incarnation += 1

    def fail_over(self, commits: int) -> None:
        """A standby takes over that lacks the newest commits. One that is kept stays."""
        keep = max(len(self.history) - commits, self.oldest)
        if keep >= len(self.history):
            return
        self.restart()
        self.timeline += 1
        self.lost += self.history[keep:]
        self.history = self.history[:keep]
        self.held, self.fleet = {}, ModelFleet()
        for row in self.history:
            self._apply(row.seq, decode_changes(row.changes))

    def _check_alive(self, incarnation: int) -> None:
        if incarnation != self.incarnation:
            raise ConnectionLost

    def _judge(self, draft: Draft) -> None:
        seq = draft.after.seq + 1
        if self.oldest <= seq <= len(self.history):
            raise Conflict
        if self._checks_predecessor:
            before = self.commits_from(draft.after.seq, 1) if draft.after.seq else []
            if not before and self.history:
                raise Conflict
            if before and Position(before[0].seq, before[0].writer) != draft.after:
                raise Conflict
        providers = [name for change in draft.changes for name in (change.holds or change.held)]
        if POISON in providers or providers.count(TOUCHY) > 1:
            raise BrokenRule
        there: dict[str, bool] = {}
        for change in draft.changes:
            if change.before is None and change.consumer in self.held and change.consumer not in there:
                raise BrokenRule
            there[change.consumer] = True

    def _commit(self, draft: Draft) -> None:
        seq = draft.after.seq + 1
        assert seq == len(self.history) + 1, f"commit {seq} does not follow {len(self.history)}"
        self.history.append(CommitRow(seq, draft.token, self._loop.now, encode_changes(draft.changes)))
        self._apply(seq, draft.changes)
        self.states[draft.token] = self.fleet.facts()
        self.write_requests(None, draft.withdrawn)

    def _apply(self, seq: int, changes: Sequence[Any]) -> None:
        self.fleet.advance(seq, changes, 0.0)
        for change in changes:
            if change.after is None:
                self.held.pop(change.consumer, None)
            else:
                self.held[change.consumer] = Held(change.after, change.holds)
