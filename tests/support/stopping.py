"""Makes a database server hang: its processes are stopped, and its kernel still accepts connections."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from roost.bench.server_process import ServerProcess


@contextlib.contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    """Stop a server's processes with SIGSTOP, and continue them at the end."""
    pids = [server.pid]
    os.kill(server.pid, signal.SIGSTOP)
    # PostgreSQL has a process for each connection. The one that makes them is stopped by now.
    pids += [int(pid) for pid in Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()]
    try:
        for pid in pids[1:]:
            _send(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in reversed(pids):
            _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
