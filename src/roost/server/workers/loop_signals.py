"""Signals of a worker: functions are called in its event loop, also if it does not run when one comes."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence


def call_on_signals(numbers: Sequence[signal.Signals], *callbacks: Callable[[], object]) -> None:
    """Call functions in the running event loop on some signals, in place of what was called on them before.

    The server runs its loop once for the start and once to serve. Handlers that are added to the loop itself
    are not told of a signal in between, when the parent knows already that the worker can serve. So it is
    sent once more as soon as the loop runs again.
    """
    loop = asyncio.get_running_loop()

    def handle(number: int, _: object) -> None:
        if loop.is_closed():
            return
        if not loop.is_running():
            loop.call_soon_threadsafe(os.kill, os.getpid(), number)
            return
        for callback in callbacks:
            loop.call_soon_threadsafe(callback)

    for number in numbers:
        signal.signal(number, handle)
