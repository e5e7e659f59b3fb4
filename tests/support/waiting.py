"""Waits for what others do, with limits that grow as the machine gets slower.

A limit of a test says how long something takes at most on a quiet machine: only a defect takes longer there.
On a machine that does other work the limit is longer by the factor that `slowness` measures.
"""

import contextlib
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_SECONDS = 120.0
"""Seconds for what takes one or two on a quiet machine: only a defect takes longer."""

REFERENCE_SECONDS = 0.03
"""Processor seconds of `_processor_seconds` on the machine on which limits were chosen."""


def slowness() -> float:
    """How many times longer the machine takes than one that is quiet: 1.0 and more.

    It is the number of threads that want to run for each processor, now or in the last minute, times the
    time of a fixed computation.
    """
    wanting = os.getloadavg()[0]
    with contextlib.suppress(OSError):  # a system without /proc has the average of the last minute alone
        wanting = max(wanting, float(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]))
    return max(1.0, wanting / (os.cpu_count() or 1)) * _slower_processor()


def patience(seconds: float = LIMIT_SECONDS) -> float:
    """Return a limit in seconds on this machine, as it is now, for what has ``seconds`` on a quiet one."""
    return seconds * slowness()


class Deadline:
    """The end of a wait of ``seconds`` on a quiet machine."""

    def __init__(self, seconds: float = LIMIT_SECONDS) -> None:
        self._seconds = seconds
        self._begun = time.monotonic()

    @property
    def passed(self) -> bool:
        """Whether the wait has taken longer than the machine, as it is now, explains."""
        waited = time.monotonic() - self._begun
        return waited > self._seconds and waited > patience(self._seconds)


def wait_for(condition: Callable[[], bool], seconds: float = LIMIT_SECONDS) -> None:
    """Wait until a condition holds. Fails after a limit that is generous on a slow machine."""
    deadline = Deadline(seconds)
    while not condition():
        assert not deadline.passed, "it did not happen"
        time.sleep(0.05)


@functools.cache
def _slower_processor() -> float:
    """How many times longer a fixed computation takes than on the machine on which limits were chosen."""
    return max(1.0, min(_processor_seconds() for _ in range(3)) / REFERENCE_SECONDS)


def _processor_seconds() -> float:
    began = time.thread_time()
    sum(number * number % 7 for number in range(200_000))
    return time.thread_time() - began
