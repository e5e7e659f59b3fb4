"""The signs of life of a worker process, and the clock by which its parent judges their absence."""

import mmap
import struct
import time
from collections.abc import Callable
from typing import Final

from roost.process.loop_watch import watching
from roost.web.dispatch import Application, Message, Receive, Send

LOOK_SECONDS: Final = 1.0
"""Seconds after which the parent reads the beats of its workers again."""

LONGEST_STEP_SECONDS: Final = 2.0
"""Seconds that `RunClock` counts between two readings at most; a longer step is a standstill."""

STARTED: Final = "lifespan.startup.complete"

_COUNT: Final = struct.Struct("Q")


class Beats:
    """A counter that one process raises and another one reads, in memory shared by a fork.

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
        """Unmap the memory in this process."""
        self._shared.close()


class RunClock:
    """A clock of the seconds that this process has run. It must be read every `LONGEST_STEP_SECONDS`.

    A longer step between two readings means that the process stood still, often with the whole machine.
    Other processes are not to blame for what they did not do in that time, so only `LONGEST_STEP_SECONDS` of
    the step count.
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


class WatchedApplication:
    """Wraps an ASGI application and watches the event loop from the start of its lifespan to the end.

    ``beat``: called while the loop turns. Times in which the loop is blocked are counted once requests are
    served.
    """

    def __init__(self, application: Application, beat: Callable[[], object]) -> None:
        self._application = application
        self._beat = beat

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        with watching(self._beat) as watch:

            async def send_on(message: Message) -> None:
                await send(message)
                if message["type"] == STARTED:
                    watch.begin()

            await self._application(scope, receive, send_on)
