"""A tap: the commits that a replica moves by, for a copy of its fleet in another process."""

from collections.abc import Callable

from roost.ledger.feed import Commit


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
