"""The sign of life of a worker process, and the clock by which its parent judges the lack of it."""

import mmap
import struct
import time
from collections.abc import Callable
from typing import Final

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks of the parent at the beats of its workers."""

LONGEST_STEP_SECONDS: Final = 2.0
"""Seconds that `RunClock` counts at most between two readings."""

_COUNT: Final = struct.Struct("Q")


class Beats:
    """A number that one process raises and another one reads, in memory that a fork shares.

    A pipe could be full, and would wake the reader at each beat.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, _COUNT.size)

    @property
    def count(self) -> int:
        """The number of beats so far."""
        number: int = _COUNT.unpack_from(self._shared)[0]
        return number

    def beat(self) -> None:
        """Raise the number by one. Only one process may call it."""
        _COUNT.pack_into(self._shared, 0, self.count + 1)

    def close(self) -> None:
        """Give the memory back, as far as this process has it."""
        self._shared.close()


class RunClock:
    """Seconds that this process has run. It must be read more often than `LONGEST_STEP_SECONDS`.

    A longer step between two readings means that the process stood still, often with the whole machine. What
    others did not do meanwhile is not their fault, so only `LONGEST_STEP_SECONDS` of it count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._read_at = clock()
        self._now = 0.0

    def now(self) -> float:
        """Read the clock."""
        read_at = self._clock()
        self._now += min(read_at - self._read_at, LONGEST_STEP_SECONDS)
        self._read_at = read_at
        return self._now
