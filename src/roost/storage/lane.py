"""A lane: one thread that makes blocking calls one after another, and is replaced when a call hangs.

Why not an executor: its threads are joined when the program ends. A driver that waits for a database that has
stopped would keep the program from ending, and each later call from being made.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Unanswered(Exception):
    """A call did not return in time. ``begun``: whether it was made; then it may still have its effect."""

    def __init__(self, begun: bool) -> None:
        super().__init__("no answer in time")
        self.begun = begun


class Lane:
    """Makes calls in a thread of its own. For use from one event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._worker: _Worker | None = None
        self._waiting: set[_Call[Any]] = set()

    async def run(self, call: Callable[[], T], seconds: float | None = None) -> T:
        """Make a call after those that wait, and return its result.

        Args:
            seconds: how long the caller waits for it; None: without limit.

        Raises:
            Unanswered: it did not return in time. If it was being made, later calls go on in a new thread.
        """
        loop = asyncio.get_running_loop()
        made = _Call(call, loop)
        timer = None if seconds is None else loop.call_later(seconds, self._give_up, made)
        self._waiting.add(made)
        self._calls.put(made)
        if self._worker is None:
            self._worker = _Worker(self._name, self._calls)
        try:
            return await made.future
        finally:
            self._waiting.discard(made)
            if timer is not None:
                timer.cancel()

    def give_up_after(self, seconds: float) -> None:
        """Have all calls that wait now end within so many seconds, answered or `Unanswered`."""
        for made in self._waiting:
            made.loop.call_later(seconds, self._give_up, made)

    async def close(self, seconds: float | None) -> None:
        """End the thread. One that does not come to its end within so many seconds is left to itself."""
        if self._worker is None:
            return
        with contextlib.suppress(Unanswered):
            await self.run(lambda: None, seconds)
        self._calls.put(None)
        self._worker = None

    def _give_up(self, made: "_Call[Any]") -> None:
        if made.future.done():
            return
        made.future.set_exception(Unanswered(made.begun))
        worker = self._worker
        at = worker.at if worker is not None else None
        if worker is not None and at is not None and at.future.done():
            # Nobody waits for the call that it is at: it must not hold up the others.
            worker.replaced = True
            self._worker = _Worker(self._name, self._calls)


class _Call(Generic[T]):
    """A call, and the future of its result."""

    def __init__(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.begun = False
        self._call = call

    def make(self) -> None:
        """Call, in a worker's thread, and hand the outcome to the event loop."""
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = self._call()
        except BaseException as error:
            failure = error
        # A loop that is closed has nobody in it who waits.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, result, failure)

    def _settle(self, result: Any, failure: BaseException | None) -> None:
        if self.future.done():
            return
        if failure is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(failure)


class _Worker:
    """A thread that makes the calls of a queue until there is None, or until it is replaced."""

    def __init__(self, name: str, calls: "SimpleQueue[_Call[Any] | None]") -> None:
        self.at: _Call[Any] | None = None
        self.replaced = False
        self._calls = calls
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while not self.replaced:
            made = self._calls.get()
            if made is None or self.replaced:
                # The end, or what another thread is to take, is passed on to it.
                self._calls.put(made)
                return
            if not made.future.done():
                self.at = made
                made.begun = True
                made.make()
                self.at = None
