"""The calls in work: each waits in a thread of oslo.messaging while the event loop decides it."""

import asyncio
import concurrent.futures
import threading
from typing import Any

from roost.nova.calls import DecideCall, SelectCall


class CallsInWork:
    """Has calls decided by the event loop of another thread.

    Args:
        decide: decides a call, in the event loop.
        loop: the event loop. It runs until no call is in work.
    """

    def __init__(self, decide: DecideCall, loop: asyncio.AbstractEventLoop) -> None:
        self._decide = decide
        self._loop = loop
        self._lock = threading.Lock()
        self._futures: set[concurrent.futures.Future[Any]] = set()
        self._ended = False

    def __len__(self) -> int:
        return len(self._futures)

    def decided(self, call: SelectCall) -> Any:
        """Return what is decided, in a thread that waits for it.

        Raises:
            CancelledError: The calls were given up before the decision began.
            Exception: any error of the decision.
        """
        with self._lock:
            if self._ended:
                raise concurrent.futures.CancelledError
            future = asyncio.run_coroutine_threadsafe(self._decision(call), self._loop)
            self._futures.add(future)
        try:
            return future.result()
        finally:
            with self._lock:
                self._futures.discard(future)

    def give_up(self) -> None:
        """Refuse the calls whose decision has not begun. May be called from any thread.

        A decision that has begun may have a claim with the writer: its caller gets what is decided, or no
        answer, and never that no host was found.
        """
        with self._lock:
            self._ended = True

    def abandon(self) -> None:
        """Cancel the decisions that are left, so that no thread waits for them. Nobody may answer then."""
        with self._lock:
            futures = list(self._futures)
        for future in futures:
            future.cancel()

    async def _decision(self, call: SelectCall) -> Any:
        if self._ended:
            raise asyncio.CancelledError
        return await self._decide(call)
