"""The replica: the fleet that a process holds, at a position, with the tentative changes of a draft."""

from collections.abc import Sequence

from roost.fleet import Fleet
from roost.ledger.commit_steps import Position
from roost.ledger.delta import Delta
from roost.model.change import Change

FOLLOW_CHARACTERS = 4 * 1024 * 1024
"""Characters of changes that a replica follows at most before it is loaded anew. Applying as many takes
about as long as loading a small fleet."""

FOLLOW_CHARACTERS_PER_PROVIDER = 1024
"""More of them for each provider of the fleet, because a larger fleet takes longer to load."""


class Replica:
    """A fleet at a position of the history. It does no I/O, and does not wait.

    The fleet shows the changes of a draft while its append is under way. To undo them at once and redo them
    when they are durable took three times the work for each claim; so they are undone only if the draft
    comes to nothing, or if somebody reads before they are durable.
    """

    def __init__(self, fleet: Fleet, position: Position, follow_characters: int = FOLLOW_CHARACTERS) -> None:
        self.fleet = fleet
        self.position = position
        self._follow_characters = follow_characters
        self._tentative: Sequence[Change] = ()
        self._followed = 0

    @property
    def follow_limit(self) -> int:
        """Characters of changes that may still be followed before loading is the shorter way.

        Those that were followed since the replica was at the head count. So a replica that follows more
        slowly than others write is loaded anew in the end.
        """
        return self._follow_characters + FOLLOW_CHARACTERS_PER_PROVIDER * len(self.fleet) - self._followed

    def show(self, changes: Sequence[Change]) -> None:
        """Take note that the fleet shows these changes, which are not durable."""
        self._tentative = changes

    def discard(self) -> None:
        """Undo what the fleet shows and is not durable."""
        if self._tentative:
            self.fleet.undo(self._tentative)
            self._tentative = ()

    def settle(self, position: Position, changes: Sequence[Change], at: float) -> None:
        """The draft became the commit at ``position``, made at ``at`` (seconds since the epoch)."""
        if self._tentative:
            self._tentative = ()
            self.fleet.settle(position.seq, changes, at)
        else:
            self.fleet.advance(position.seq, changes, at)
        self.position = position

    def follow(self, delta: Delta) -> None:
        """Move to the end of a delta's page."""
        self.discard()
        if delta.fleet is not None:
            self.fleet = delta.fleet
        for commit in delta.commits:
            self.fleet.advance(commit.seq, commit.changes, commit.at)
            self._followed += commit.size
        if delta.complete:
            self._followed = 0
        self.position = delta.position
