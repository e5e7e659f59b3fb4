"""Makes a database server hang: its processes are stopped, and its kernel still accepts connections."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from roost.bench.server_process import ServerProcess
from support.waiting import wait_for


@contextlib.contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    """Stop a server's processes with SIGSTOP, wait until they stand still, and continue them at the end."""
    pids = [server.pid]
    os.kill(server.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: _stands_still(server.pid))
        # PostgreSQL has a process for each connection. The one that makes them is stopped by now.
        pids += [int(pid) for pid in Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()]
        for pid in pids[1:]:
            _send(pid, signal.SIGSTOP)
        wait_for(lambda: all(map(_stands_still, pids)))
        yield
    finally:
        for pid in reversed(pids):
            _send(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    """Return whether each thread has stopped or ended: on a busy machine one may still answer for a while."""
    return all(_state(task) in "TZX" for task in Path(f"/proc/{pid}/task").glob("*/stat"))


def _state(task: Path) -> str:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return task.read_text().rpartition(")")[2].split()[0]
    return "X"


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
