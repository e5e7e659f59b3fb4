"""Schedules: what happens is drawn from a seed, run, and held against the ledger's promises."""

from collections import Counter
from random import Random
from typing import Any, NamedTuple

from ledger.simulation.loop import Loop, Process, Stuck
from ledger.simulation.model import (
    CAPACITY,
    POISON,
    PROVIDERS,
    ROOMY,
    TOUCHY,
    Claim,
    Done,
    Free,
    ModelFleet,
    Refusal,
    marker_of,
)
from ledger.simulation.server import Server
from ledger.simulation.writer import Call, Defects, Integrity, Link, Node
from roost.ledger import LedgerBusy
from roost.ledger.commit_states import CommitLimits
from roost.ledger.feed import decode_changes
from roost.storage import DatabaseUnavailable, OutcomeUnknown

STEPS = 60_000
"""Of the simulated loop, after which a schedule counts as stuck."""

FAIR_ATTEMPTS = 20
"""Attempts of one batch at most, however far its writer is from the database, while nothing fails.

One in 50 schedules has 12 and one in 6,000 has 14, with which the request for a turn is overlooked once more
by a writer that skips a look at the head. Without turns the batch fails after `CommitLimits.attempts`."""


class BrokenPromise(AssertionError):
    """A promise of the ledger that a schedule broke."""


class Read(NamedTuple):
    """What a reader saw, and the head's number and timeline when it asked."""

    asked_at: tuple[int, int]
    ended_in: int
    version: int
    token: str | None
    facts: dict[str, int]


class Kind(NamedTuple):
    """What may happen in a schedule."""

    link: Link = Link()
    writers: int = 3
    far: float = 0.0
    """Seconds that the first process is from the database, while the others write without a pause; 0.0: no
    process is."""
    restarts: bool = False
    fails_over: bool = False
    trims: bool = False
    odd: bool = False
    """Some commands break rules of the tables."""
    groups: bool = False
    """Claims are for members of two anti-affinity groups."""
    assigns: bool = False
    """Claims are for one of four CPUs of the provider."""


KINDS = {
    "calm": Kind(),
    "alone": Kind(writers=1, odd=True),
    "far": Kind(writers=3, far=0.02),
    "odd": Kind(odd=True, trims=True),
    "cut": Kind(Link(cut_before=0.1, cut_after=0.1)),
    "late": Kind(Link(cut_after=0.05, late=0.15)),
    "away": Kind(Link(away=0.1, cut_after=0.1), restarts=True),
    "trimmed": Kind(Link(cut_after=0.1, late=0.05), trims=True),
    "standby": Kind(fails_over=True),
    "groups": Kind(Link(cut_after=0.1, late=0.05), groups=True),
    "assignments": Kind(Link(cut_after=0.1, late=0.05), assigns=True),
    "everything": Kind(Link(0.001, 0.03, 0.05, 0.05, 0.05), 4, 0.0, True, True, True, True),
}


class Schedule:
    """One run of one kind, from one seed."""

    def __init__(self, kind: Kind, seed: int, defects: Defects, checks_predecessor: bool = True) -> None:
        self.kind = kind
        self.random = Random(seed)
        self.loop = Loop()
        self.server = Server(self.loop, self.random.random() < 0.6, checks_predecessor)
        limits = CommitLimits(recovery=self.random.choice((0.05, 10.0)), recovery_pause=0.02, turn=1.0)
        self.processes = []
        for number in range(kind.writers):
            link = kind.link._replace(delay=kind.far) if kind.far and not number else kind.link
            process = Node(f"w{number}", self.loop, self.server, link, self.random, limits, defects)
            self.processes.append(process)
        self.calls: list[Call] = []
        self.reads: list[Read] = []
        self.markers = 0
        self.far_is_done = False

    def run(self) -> None:
        """Raises: `BrokenPromise`."""
        for number, process in enumerate(self.processes):
            if self.kind.far:
                self.loop.spawn(self._far_client(process) if not number else self._near_client(process))
                continue
            for _ in range(self.random.randint(1, 4)):
                self.loop.spawn(self._client(process, self.random.randint(2, 6)))
            if self.random.random() < 0.7:
                self.loop.spawn(self._reader(process))
        if self.kind.restarts or self.kind.fails_over or self.kind.trims:
            self.loop.spawn(self._operator())
        try:
            self.loop.run(STEPS)
            # What was late is there by now, and the network works again: all come to one end.
            for process in self.processes:
                process.link = Link()
                self.loop.spawn(self._read(process))
            self.loop.run(STEPS)
        except Stuck as error:
            raise BrokenPromise(str(error)) from error
        except AssertionError as error:
            raise BrokenPromise(f"broken on the way: {error}") from error
        self._check()

    # What happens

    def _client(self, process: Node, commands: int) -> Process:
        for _ in range(commands):
            # Often several at once, so that they share a batch.
            calls = [process.execute(self._command()) for _ in range(self.random.choice((1, 1, 2, 4)))]
            self.calls += calls
            if self.random.random() < 0.8:
                for call in calls:
                    yield call.answered
            yield self.random.choice((0.0, 0.0, 0.003, 0.02))

    def _far_client(self, process: Node) -> Process:
        for _ in range(2):
            call = process.execute(self._command())
            self.calls.append(call)
            yield call.answered
        self.far_is_done = True

    def _near_client(self, process: Node) -> Process:
        while not self.far_is_done:
            call = process.execute(self._command())
            self.calls.append(call)
            yield call.answered

    def _command(self) -> Any:
        if self.kind.far:
            self.markers += 1
            return Claim(f"m{self.markers}", f"n{self.markers}", ROOMY, 1)
        consumer = f"c{self.random.randrange(14)}"
        if self.random.random() < 0.4:
            return Free(consumer)
        self.markers += 1
        provider = self.random.choice(PROVIDERS)
        if self.kind.odd and self.random.random() < 0.3:
            provider = self.random.choice((TOUCHY, TOUCHY, POISON))
        if self.random.random() < 0.5:
            consumer = f"n{self.markers}"
        amount = self.random.choice((1, 2))
        group = self.random.choice(("red", "blue")) if self.kind.groups else None
        cpu = self.random.randrange(4) if self.kind.assigns else None
        return Claim(f"m{self.markers}", consumer, provider, amount, group, cpu)

    def _reader(self, process: Node) -> Process:
        for _ in range(self.random.randint(1, 8)):
            yield from self._read(process)
            yield self.random.choice((0.0, 0.002, 0.01, 0.05))

    def _read(self, process: Node) -> Process:
        asked_at = (len(self.server.history), self.server.timeline)
        try:
            version, position, facts = yield from process.current()
        except DatabaseUnavailable:
            return
        self.reads.append(Read(asked_at, self.server.timeline, version, position.token, facts))

    def _operator(self) -> Process:
        for _ in range(self.random.randint(1, 4)):
            yield self.random.uniform(0.0, 0.1)
            if self.kind.trims:
                self.server.trim(self.random.choice((1, 3)))
            if self.kind.restarts and self.random.random() < 0.5:
                self.server.restart()
            if self.kind.fails_over and self.random.random() < 0.6:
                self.server.fail_over(self.random.randint(1, 4))

    # What was promised

    def _check(self) -> None:
        self._check_history()
        self._check_outcomes()
        self._check_reads()
        for process in self.processes:
            fleet: Any = process.replica.fleet
            _promise(process.replica.position == self.server.position, f"{process.name} is not at the head")
            _promise(fleet.facts() == self.server.fleet.facts(), f"{process.name} is not as its replay")
            plain = self.kind.link == Link() and not self.kind.fails_over
            _promise(
                not plain or process.most_attempts <= FAIR_ATTEMPTS,
                f"{process.name} needed {process.most_attempts} attempts",
            )

    def _check_history(self) -> None:
        fleet, held = ModelFleet(), dict[str, Any]()
        tokens = [row.writer for row in self.server.history]
        _promise(len(set(tokens)) == len(tokens), "an append was made twice")
        for number, row in enumerate(self.server.history, 1):
            _promise(row.seq == number, f"commit {row.seq} is in place {number}")
            for change in decode_changes(row.changes):
                before = (change.before, change.held)
                _promise(held.pop(change.consumer, (None, {})) == before, f"commit {number} does not follow")
                if change.after is not None:
                    held[change.consumer] = (change.after, change.holds)
                fleet.apply(change)
            for (group, provider), members in fleet.members.items():
                _promise(members <= 1, f"commit {number} has {members} members of {group} on {provider}")
            for (provider, cpu), consumers in fleet.cpus.items():
                _promise(consumers <= 1, f"commit {number} gives CPU {cpu} of {provider} to {consumers}")
            for provider, used in fleet.used.items():
                _promise(
                    used <= CAPACITY or provider == ROOMY, f"commit {number} allocates {used} of {provider}"
                )

    def _check_outcomes(self) -> None:
        there, lost = (
            Counter(marker_of(change) for row in rows for change in decode_changes(row.changes))
            for rows in (self.server.history, self.server.lost)
        )
        done: Counter[str] = Counter()
        for marker, count in there.items():
            _promise(count == 1, f"{marker} is in the history {count} times")
        for call in self.calls:
            _promise(call.answered.is_open, f"{call.command} was never answered")
            outcome = call.outcome
            marker = getattr(call.command, "marker", None)
            match outcome:
                case Done():
                    done[outcome.marker] += 1
                    held = there[outcome.marker] or lost[outcome.marker]
                    _promise(bool(held), f"{call.command} was acknowledged, and is not in the history")
                    self._check_version(call, outcome.version)
                case Refusal():
                    self._check_absent(marker, there, call)
                    self._check_version(call, outcome.version)
                case OutcomeUnknown():
                    pass
                case LedgerBusy() | DatabaseUnavailable():
                    self._check_absent(marker, there, call)
                case Integrity():
                    provider = getattr(call.command, "provider", None)
                    _promise(provider == POISON, f"{call.command} breaks no rule, and was refused for one")
                    self._check_absent(marker, there, call)
                case _:
                    raise BrokenPromise(f"{call.command} got {outcome!r}")
        for marker, count in done.items():
            _promise(count <= there[marker] + lost[marker], f"{marker} was acknowledged {count} times")

    def _check_absent(self, marker: str | None, there: Any, call: Call) -> None:
        """What the database lost by itself may have been judged once more, and refused."""
        if marker is not None:
            _promise(not there[marker], f"{call.command} got {call.outcome!r}, and is in the history")

    def _check_version(self, call: Call, version: int) -> None:
        """A command is judged on a state that has all that was durable when it was handed in."""
        (head, timeline), ended_in = call.submitted_at, call.answered_at[1]
        if timeline == ended_in:
            _promise(version >= head, f"{call.command} was judged at {version}, handed in at {head}")

    def _check_reads(self) -> None:
        for read in self.reads:
            expected = {} if read.token is None else self.server.states.get(read.token)
            _promise(expected == read.facts, f"a reader saw {read.facts} at {read.version}, not {expected}")
            if read.asked_at[1] == read.ended_in:
                head = read.asked_at[0]
                _promise(read.version >= head, f"a reader saw {read.version}, and asked at {head}")


def _promise(kept: bool, text: str) -> None:
    if not kept:
        raise BrokenPromise(text)
