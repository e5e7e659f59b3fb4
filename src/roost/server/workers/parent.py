"""The end of a worker with its parent process, even if the parent ends by SIGKILL."""

import ctypes
import os
import signal
from typing import Final

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


def end_with_parent(parent: int) -> None:
    """Have the kernel send this process SIGTERM when its parent ends.

    ``parent``: the process id of the parent, read before the fork.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
