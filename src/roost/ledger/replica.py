"""The replica: the fleet that a process holds, at a position, with the tentative changes of a draft."""

from collections.abc import Callable, Sequence

from roost.fleet import Fleet
from roost.ledger.commit_steps import Position
from roost.ledger.delta import Delta
from roost.ledger.feed import Commit
from roost.model.change import Change


class CommitTap:
    """The commits since the last `take`. Without a tap nothing is kept.

    ``characters``: the size of the changes of these commits. ``broken``: the fleet was loaded anew, so that
    no commits lead to it.
    """

    def __init__(self, closed: Callable[["CommitTap"], None]) -> None:
        self.characters = 0
        self.broken = False
        self._commits: list[Commit] = []
        self._closed = closed

    def put(self, seq: int, at: float, changes: str) -> None:
        """Keep a commit; see `Commit`."""
        self._commits.append(Commit(seq, at, changes))
        self.characters += len(changes)

    def take(self) -> list[Commit]:
        """Return the commits since the last call, in order."""
        commits, self._commits, self.characters = self._commits, [], 0
        return commits

    def close(self) -> None:
        """Keep no further commits."""
        self._closed(self)


FOLLOW_CHARACTERS = 4 * 1024 * 1024
"""Most characters of changes that a replica follows; with more to follow it is loaded anew. Applying this
many takes about as long as loading a small fleet."""

FOLLOW_CHARACTERS_PER_PROVIDER = 1024
"""Characters added to `FOLLOW_CHARACTERS` for each provider: a larger fleet takes longer to load."""


class Replica:
    """A fleet at a position of the history. It does no I/O, and does not wait.

    The fleet includes the changes of a draft while its append is under way. They are undone only if the
    append fails, or if a client reads before they are durable. To undo them after every draft and redo them
    when they are durable took three times the work for each claim.
    """

    def __init__(self, fleet: Fleet, position: Position, follow_characters: int = FOLLOW_CHARACTERS) -> None:
        self.fleet = fleet
        self.position = position
        self._follow_characters = follow_characters
        self._tentative: Sequence[Change] = ()
        self._followed = 0
        self._taps: list[CommitTap] = []

    @property
    def follow_limit(self) -> int:
        """Characters of changes that the replica may still follow before it is loaded anew.

        The characters followed since the replica was last at the head count, so that a replica that follows
        more slowly than others write is loaded anew in the end.
        """
        return self._follow_characters + FOLLOW_CHARACTERS_PER_PROVIDER * len(self.fleet) - self._followed

    def show(self, changes: Sequence[Change]) -> None:
        """Record that the fleet includes these changes, which are not durable yet."""
        self._tentative = changes

    def discard(self) -> None:
        """Undo the changes that are not durable."""
        if self._tentative:
            self.fleet.undo(self._tentative)
            self._tentative = ()

    def settle(self, position: Position, changes: Sequence[Change], at: float, text: str) -> None:
        """Advance to the commit that the draft became.

        ``at``: its time, seconds since the epoch; ``text``: its changes as its row holds them.
        """
        if self._tentative:
            self._tentative = ()
            self.fleet.settle(position.seq, changes, at)
        else:
            self.fleet.advance(position.seq, changes, at)
        self.position = position
        for tap in self._taps:
            tap.put(position.seq, at, text)

    def tap(self) -> CommitTap:
        """Return a tap of the commits that the replica moves by from now on, until the tap is closed."""
        tap = CommitTap(self._taps.remove)
        self._taps.append(tap)
        return tap

    def follow(self, delta: Delta) -> None:
        """Move to the end of a delta's page."""
        self.discard()
        if delta.fleet is not None:
            self.fleet = delta.fleet
            for tap in self._taps:
                tap.broken = True
        for commit in delta.commits:
            self.fleet.advance(commit.seq, commit.changes, commit.at)
            self._followed += len(commit.text)
            for tap in self._taps:
                tap.put(commit.seq, commit.at, commit.text)
        if delta.complete:
            self._followed = 0
        self.position = delta.position
