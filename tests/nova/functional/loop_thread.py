"""An event loop in a thread of its own, for coroutines that threads without a loop wait for."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines. It starts with the first one and ends with the process."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="roost", daemon=True).start()
            return self._loop

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result, or raise its error."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()
