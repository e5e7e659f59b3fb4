"""A command of operators that runs in a process group of its own."""

import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress


def kill_group(process: Process) -> None:
    """Kill a process that leads a group, and the processes that it has started."""
    # It may have ended meanwhile.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
