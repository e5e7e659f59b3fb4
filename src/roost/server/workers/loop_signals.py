"""Signals of a worker: functions are called in its event loop, also if it does not run when one comes."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence


def call_on_signals(numbers: Sequence[signal.Signals], *callbacks: Callable[[], object]) -> None:
    """Call functions in the running event loop on some signals, in place of what was called on them before.

    The server runs its loop once for the start and once to serve. Handlers that are added to the loop itself
    are not told of a signal in between, when the parent knows already that the worker can serve.
    """
    loop = asyncio.get_running_loop()

    def handle(*_: object) -> None:
        if loop.is_closed():
            return
        for callback in callbacks:
            loop.call_soon_threadsafe(callback)

    for number in numbers:
        signal.signal(number, handle)


def sent_once_more(number: signal.Signals) -> Callable[[], None]:
    """Return a function that sends this process a signal at its first call.

    Called in the event loop, it has handlers that are added to the loop itself told of a signal of which
    they may have heard nothing.
    """
    sent = False

    def send() -> None:
        nonlocal sent
        if not sent:
            sent = True
            os.kill(os.getpid(), number)

    return send
