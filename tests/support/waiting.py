"""Waits for what other processes do."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until a condition holds. Fails after a limit that is generous on a slow machine."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)
