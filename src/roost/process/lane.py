"""A lane: one thread that makes blocking calls one after another, and is replaced when a call hangs.

Python joins the threads of an executor when the program ends. A driver that waits for a stopped database
would then keep the program from ending, and would block every later call.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CallTimedOut(Exception):
    """A call did not return in time. ``begun``: whether it had begun; then it may still take effect."""

    def __init__(self, begun: bool) -> None:
        super().__init__("no answer in time")
        self.begun = begun


def awaitable(error: BaseException) -> BaseException:
    """Return the error as a future can carry it: RuntimeError in place of StopIteration, as in PEP 479.

    A future refuses StopIteration, and the coroutine that waits for it would wait for ever.
    """
    if not isinstance(error, StopIteration):
        return error
    carried = RuntimeError("a call raised StopIteration")
    carried.__cause__ = error
    return carried


class Lane:
    """One thread that makes blocking calls for one event loop, in their order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._worker: _Worker | None = None
        self._waiting: set[_Call[Any]] = set()

    async def run(self, call: Callable[[], T], seconds: float | None = None) -> T:
        """Make a call after the waiting ones, and return its result.

        Args:
            call: runs in the lane's thread.
            seconds: time limit of waiting and call together; None: no limit.

        Raises:
            CallTimedOut: it did not return in time. If it had begun, a new thread makes the later calls.
            Exception: any error of ``call``.
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
        """Make the calls that wait or run now fail with `CallTimedOut` after ``seconds``."""
        for made in self._waiting:
            made.loop.call_later(seconds, self._give_up, made)

    async def close(self, seconds: float | None) -> None:
        """End the thread after its calls. A thread that takes longer than ``seconds`` is abandoned."""
        if self._worker is None:
            return
        with contextlib.suppress(CallTimedOut):
            await self.run(lambda: None, seconds)
        self._calls.put(None)
        self._worker = None

    def _give_up(self, made: "_Call[Any]") -> None:
        if made.future.done():
            return
        made.future.set_exception(CallTimedOut(begun=not made.take()))
        worker = self._worker
        current = worker.current if worker is not None else None
        if worker is not None and current is not None and current.future.done():
            # The thread hangs in a call that has timed out: a new thread makes the other calls.
            worker.replaced = True
            self._worker = _Worker(self._name, self._calls)


class _Call(Generic[T]):
    """A call and the future of its result."""

    def __init__(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self._taken = threading.Lock()
        self._call = call

    def take(self) -> bool:
        """Claim the right to make the call or give it up. Returns True to one caller only, in any thread."""
        return self._taken.acquire(blocking=False)

    def make(self) -> None:
        """Make the call in this thread and pass its result or error to the event loop."""
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = self._call()
        except BaseException as error:
            failure = awaitable(error)
        # The loop may be closed; then no coroutine waits for the result.
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
    """A thread that makes the calls of a queue until it takes None, or until it is replaced.

    ``current`` is the call that it is making.
    """

    def __init__(self, name: str, calls: "SimpleQueue[_Call[Any] | None]") -> None:
        self.current: _Call[Any] | None = None
        self.replaced = False
        self._calls = calls
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while not self.replaced:
            made = self._calls.get()
            if made is None or self.replaced:
                # None, and a call for the thread that replaces this one, go back to the queue.
                self._calls.put(made)
                return
            if not made.future.done():
                self.current = made
                if made.take():
                    made.make()
                self.current = None
