"""The audit of the history: the kept commits are undone one by one to the oldest, and applied again.

Each commit holds every changed fact before and after it. While commits are undone, the state at each step
must be the one that the commit left; if the first commit of all is kept, nothing may be left at the end. A
contradicting fact is set to the value in the commit, so that one mistake gives one finding.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.fleet.errors import FleetError
from roost.ledger.audit_snapshot import AuditSnapshot
from roost.ledger.breaches import Breaches
from roost.ledger.facts import (
    FLEET_KINDS,
    KINDS,
    Facts,
    assigned_in,
    differences,
    facts_of,
    members_in,
    named_by,
    put,
    sides,
    used_in,
)
from roost.ledger.feed import decode_changes
from roost.ledger.findings import (
    COMMIT_GAP,
    COMMIT_UNREADABLE,
    FLEET_DIFFERS,
    STATE_DIFFERS,
    TIME_DIFFERS,
    UNEXPLAINED,
    Finding,
)
from roost.ledger.tables import commits
from roost.model.change import Change

COMMITS_AT_ONCE = 100
"""Commits fetched at once."""


Progress = Callable[[int, int], None]
"""Called with the number done and the total."""


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def replay(
    connection: Connection,
    snapshot: AuditSnapshot,
    fleet: Fleet | None,
    breaches: Breaches,
    progress: Progress = no_progress,
) -> list[Finding]:
    """Undo and redo the commits on ``snapshot`` and ``fleet``, and undo them on ``breaches``.

    Snapshot and fleet (None: it could not be loaded) must equal the tables, and do so again at the end if
    nothing was found.
    """
    seqs = list(connection.execute(sa.select(commits.c.seq).order_by(commits.c.seq)).scalars())
    findings = [
        Finding(COMMIT_GAP, _range(one + 1, next_ - 1), f"missing between {one} and {next_}")
        for one, next_ in pairwise(seqs)
        if next_ != one + 1
    ]
    # Only the commits after the last gap can be undone: the changes in the gap are not known.
    gap = max(
        (number for number, (one, next_) in enumerate(pairwise(seqs), 1) if next_ != one + 1), default=0
    )
    total = len(seqs) - gap
    # Each is undone and redone.
    history = _History(connection, snapshot, fleet, breaches, lambda steps: progress((steps + 1) // 2, total))
    if not seqs:
        if any(snapshot.facts.values()):
            return [Finding(UNEXPLAINED, "all tables", "they are not empty, but no commit is kept")]
        return []
    history.undo(seqs[gap])
    if history.at == 0:
        history.expect_nothing()
    history.redo(seqs[-1])
    return findings + history.findings + history.times


class _History:
    def __init__(
        self,
        connection: Connection,
        snapshot: AuditSnapshot,
        fleet: Fleet | None,
        breaches: Breaches,
        progress: Callable[[int], None],
    ) -> None:
        self._connection = connection
        self._snapshot = snapshot
        self._loaded: Facts = {kind: dict(facts) for kind, facts in snapshot.facts.items()}
        self._fleet = fleet
        self._breaches = breaches
        self._progress = progress
        self._done = 0
        self._told: set[tuple[str, str]] = set()
        self._said_by: dict[tuple[str, str], int] = {}
        self.at = -1
        """The newest commit that is not undone."""
        self.findings: list[Finding] = []
        self.times: list[Finding] = []
        """Findings on the times of rows, which contradict no fact."""

    def undo(self, oldest: int) -> None:
        """Undo commits down to and including ``oldest``, or until one cannot be decoded."""
        named: set[tuple[str, str]] = set()
        for seq, text, at in self._commits(commits.c.seq >= oldest, commits.c.seq.desc()):
            try:
                changes = decode_changes(text)
            except msgspec.MsgspecError as error:
                self.findings.append(Finding(COMMIT_UNREADABLE, f"commit {seq}", str(error)))
                self.at = seq
                return
            for change in reversed(changes):
                self._undo(seq, change)
                thing = named_by(change)
                if thing is not None and thing not in named:
                    named.add(thing)
                    self._check_time(seq, at, *thing)
            if self._fleet is not None:
                self._move_fleet(seq, changes, back=True)
            self.at = seq - 1

    def expect_nothing(self) -> None:
        """Check that nothing is left after all commits are undone."""
        for kind, facts in self._snapshot.facts.items():
            for name, fact in sorted(facts.items()):
                self._tell(UNEXPLAINED, kind, name, f"the tables have {fact}, which no commit put there")
            facts.clear()
        if self._fleet is not None and (
            any(facts_of(self._fleet).values())
            or used_in(self._fleet)
            or members_in(self._fleet)
            or assigned_in(self._fleet)
        ):
            self.findings.append(
                Finding(FLEET_DIFFERS, "fleet", "not empty though every commit has been undone")
            )

    def redo(self, newest: int) -> None:
        """Redo the undone commits up to ``newest``, and compare the result with the tables."""
        for seq, text, _ in self._commits(commits.c.seq > self.at, commits.c.seq.asc()):
            changes = decode_changes(text)
            for change in changes:
                for kind, name, _, after in sides(change):
                    put(self._snapshot.facts, kind, name, after)
            if self._fleet is not None:
                self._move_fleet(seq, changes, back=False)
        for kind, name, redone, loaded in differences(self._snapshot.facts, self._loaded, KINDS):
            self._tell(
                STATE_DIFFERS,
                kind,
                name,
                f"the commits up to {newest} lead to {redone}, the tables have {loaded}",
            )
        if self._fleet is not None and not self.findings:
            for kind, name, ours, theirs in differences(self._loaded, facts_of(self._fleet), FLEET_KINDS):
                self._tell(FLEET_DIFFERS, kind, name, f"a replayed fleet has {theirs}, the tables {ours}")
            if +self._snapshot.used != used_in(self._fleet):
                self.findings.append(Finding(FLEET_DIFFERS, "fleet", "a replayed fleet has other use"))
            if self._snapshot.members != members_in(self._fleet):
                self.findings.append(
                    Finding(FLEET_DIFFERS, "fleet", "a replayed fleet has other members of server groups")
                )
            if self._snapshot.assigned != assigned_in(self._fleet):
                self.findings.append(
                    Finding(FLEET_DIFFERS, "fleet", "a replayed fleet has other assignments")
                )

    def _undo(self, seq: int, change: Change) -> None:
        for kind, name, before, after in sides(change):
            current = self._snapshot.facts[kind].get(name)
            if current != after:
                later = self._said_by.get((kind, name))
                says = "the tables have" if later is None else f"commit {later} says it was"
                self._tell(STATE_DIFFERS, kind, name, f"commit {seq} left {after}, {says} {current}")
            self._said_by[kind, name] = seq
            put(self._snapshot.facts, kind, name, before)
        self._breaches.look_back(seq, change)

    def _check_time(self, seq: int, at: float, kind: str, name: str) -> None:
        """Compare the time of a row with that of commit ``seq``, the newest one that names it."""
        changed_at = self._snapshot.changed_at.get((kind, name))
        if changed_at is not None and changed_at != at:
            detail = f"changed at {changed_at}, but commit {seq}, the newest that names it, was made at {at}"
            self.times.append(Finding(TIME_DIFFERS, f"{kind} {name}", detail))

    def _move_fleet(self, seq: int, changes: list[Change], back: bool) -> None:
        assert self._fleet is not None
        try:
            if back:
                self._fleet.undo(changes)
                self._fleet.version = seq - 1
            else:
                self._fleet.advance(seq, changes, 0.0)
        except FleetError as error:
            doing = "undoing" if back else "doing"
            # A contradiction in the tables is a finding already.
            if not self.findings:
                self.findings.append(Finding(FLEET_DIFFERS, f"commit {seq}", f"{doing} it: {error}"))
            self._fleet = None

    def _tell(self, finding: str, kind: str, name: str, detail: str) -> None:
        if (kind, name) not in self._told:
            self._told.add((kind, name))
            self.findings.append(Finding(finding, f"{kind} {name}", detail))

    def _commits(
        self, where: sa.ColumnElement[bool], order: sa.UnaryExpression[int]
    ) -> Iterator[tuple[int, str, float]]:
        columns = (commits.c.seq, commits.c.changes, commits.c.committed_at)
        query = sa.select(*columns).where(where).order_by(order)
        rows = self._connection.execute(query, execution_options={"yield_per": COMMITS_AT_ONCE})
        with rows:
            for row in rows:
                yield row
                self._done += 1
                self._progress(self._done)


def _range(first: int, last: int) -> str:
    return f"commit {first}" if first == last else f"commits {first} to {last}"
