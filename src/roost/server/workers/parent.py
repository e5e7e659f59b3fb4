"""The end of a process with its parent, which even SIGKILL of the parent brings about."""

import ctypes
import os
import signal
from typing import Final

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


def end_with_parent(parent: int) -> None:
    """Send this process SIGTERM when its parent ends. ``parent``: the parent's process id before the fork."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
