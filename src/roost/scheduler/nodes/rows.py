"""Free rows of the node table, left by removed nodes, for reuse by new nodes."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class FreeRows:
    """Rows without a node.

    A run of the scheduler holds indexes of nodes while it waits for placement. So a row is reused only when
    every run that began before the row was freed has ended; until then it stays as its node left it.
    """

    def __init__(self) -> None:
        self._free: deque[tuple[int, int]] = deque()
        self._begun = 0
        self._reading: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._free)

    def free(self, row: int) -> None:
        """Add the row of a removed node."""
        self._free.append((row, self._begun))

    def take(self) -> int | None:
        """Return a row for a new node, None if none can be reused now."""
        if not self._free:
            return None
        row, freed_after = self._free[0]
        if self._reading and next(iter(self._reading)) <= freed_after:
            return None
        self._free.popleft()
        return row

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep rows that are freed from now on from being reused until the end of the context."""
        self._begun += 1
        reader = self._begun
        self._reading[reader] = None
        try:
            yield
        finally:
            del self._reading[reader]
