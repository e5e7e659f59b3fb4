"""The watch of a process's event loop: it counts and logs long holds, and beats while the loop turns.

While one step of one coroutine runs, nothing else does: no claim, no heartbeat, no answer to a probe. Debug
mode of asyncio finds such steps too, for many times the cost, and names no operation.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final

import structlog

from roost.process.metrics import catalogue as metrics
from roost.process.timed_steps import timed

BEAT_SECONDS: Final = 0.5
"""Seconds between two beats."""

LOGGED_SECONDS: Final = 0.25
"""Seconds from which on a hold is logged."""

SILENT_SECONDS: Final = 60.0
"""Seconds between two lines about one operation. The next line has the number of holds in between."""

UNKNOWN: Final = "unknown"
"""The operation of a hold outside of timed steps: a callback ran, or the process stood still."""

_log = structlog.get_logger()


class LoopWatch:
    """Counts and logs the holds of one event loop.

    Nothing is counted before `begin`: opening databases at the start may take long, and no request waits yet.
    ``seconds``: the sum of all holds. ``beat``: called every `BEAT_SECONDS` while the loop turns. ``clock``:
    seconds.
    """

    def __init__(
        self, beat: Callable[[], object] = lambda: None, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.seconds = 0.0
        self._beat = beat
        self._clock = clock
        self._counts = False
        self._lines: dict[str, tuple[float, int]] = {}
        """By operation: when its last line was logged, and the holds since then."""
        self._timer: asyncio.TimerHandle | None = None
        self._turned_at = 0.0
        self._noted = 0.0

    def begin(self) -> None:
        """Count and log holds from now on."""
        self._counts = True
        # The time since the last beat belongs to the start.
        self._turned_at = 0.0
        # The series is there before its first hold, so that a rate shows that one too.
        metrics.LOOP_HOLDS.labels(UNKNOWN)

    def note(self, operation: str, seconds: float) -> None:
        """Count a hold, and log it if it is long and its operation was not logged for a while."""
        self.seconds += seconds
        if not self._counts:
            return
        metrics.LOOP_HOLDS.labels(operation).observe(seconds)
        if seconds < LOGGED_SECONDS:
            return
        now = self._clock()
        logged_at, unlogged = self._lines.get(operation, (-SILENT_SECONDS, 0))
        if now - logged_at < SILENT_SECONDS:
            self._lines[operation] = (logged_at, unlogged + 1)
            return
        self._lines[operation] = (now, 0)
        more = {"more_since_the_last_line": unlogged} if unlogged else {}
        _log.warning(
            "the event loop was held", operation=operation, milliseconds=round(seconds * 1000), **more
        )

    def turned(self) -> None:
        """Beat, and count a hold if no timed step explains that this call is late.

        It is called every `BEAT_SECONDS`.
        """
        now = self._clock()
        late = now - self._turned_at - BEAT_SECONDS - (self.seconds - self._noted)
        if self._turned_at and late >= LOGGED_SECONDS:
            self.note(UNKNOWN, late)
        self._turned_at, self._noted = now, self.seconds
        self._beat()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat, and time the steps of all tasks that the loop makes from now on."""
        loop.set_task_factory(self._task)
        self._turn_again(loop)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop beating. Present tasks are timed until they end."""
        loop.set_task_factory(None)
        if self._timer is not None:
            self._timer.cancel()

    def _turn_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turned()
        self._timer = loop.call_later(BEAT_SECONDS, self._turn_again, loop)

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
        # A function's name, not the task's, which may have the name of a host: labels must stay few.
        name = getattr(coroutine, "__qualname__", type(coroutine).__qualname__)
        task = asyncio.Task(timed(coroutine, lambda: name, self), loop=loop, **options)
        # One that is cancelled before its first step has not begun its coroutine: Python would warn of it.
        task.add_done_callback(lambda _: coroutine.close())
        return task


_watch: LoopWatch | None = None


def running_watch() -> LoopWatch | None:
    """Return the watch of this process's event loop; None if it is not watched."""
    return _watch


def note_hold(operation: str, seconds: float) -> None:
    """Count a part of the present step as a hold by itself: the step's own hold is told without it."""
    if _watch is not None:
        _watch.note(operation, seconds)


@contextmanager
def watching(beat: Callable[[], object] = lambda: None) -> Iterator[LoopWatch]:
    """Watch the running event loop during the context."""
    global _watch
    loop = asyncio.get_running_loop()
    before, _watch = _watch, LoopWatch(beat)
    watch = _watch
    watch.start(loop)
    try:
        yield watch
    finally:
        watch.stop(loop)
        _watch = before
