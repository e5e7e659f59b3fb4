"""A program for `test_supervisor`: a service whose workers serve nothing. It ends once all are ready.

Its argument says what goes wrong before: ``together``, ``fork`` or ``pipe``.
"""

import errno
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from roost.server.workers.beats import Beats
from roost.server.workers.listeners import Listeners
from roost.server.workers.supervision import SupervisionRules
from roost.server.workers.supervision_events import Cause
from roost.server.workers.supervisor import Hooks, Supervisor
from roost.server.workers.worker_process import Report

WORKERS = 3
T = TypeVar("T")


class Unused(Listeners):
    """Sockets to which nobody connects."""

    def __init__(self) -> None:
        self.sockets = [socket.socket() for _ in range(WORKERS)]

    def steer(self, slots: Collection[int]) -> None:
        pass


class Idle:
    """A service that does nothing. The first ``failures`` workers end at once."""

    def __init__(self, failures: int) -> None:
        self._failures = multiprocessing.Semaphore(failures)

    def run(self, listener: socket.socket, report: Report, cause: Cause, beats: Beats) -> None:
        if self._failures.acquire(block=False):
            sys.exit(7)
        report(None)
        signal.pause()

    def reread(self) -> "Idle":
        return self


class Late(selectors.DefaultSelector):
    """A selector that waits until all workers that fail have ended, and names the wake-up pipe first."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        time.sleep(0.5)
        return sorted(super().select(timeout), key=lambda found: found[0].fd)


def failing_once(call: Callable[[], T]) -> Callable[[], T]:
    """Return a call that fails the first time that a worker is to be started."""
    failures = [OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))]

    def instead() -> T:
        if failures and sys._getframe(1).f_code.co_name == "fork_worker":
            raise failures.pop()
        return call()

    return instead


def main(trouble: str) -> None:
    def ready() -> None:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        # The pipe by which signals wake the parent is open, and no other one.
        opened = len(list(Path("/proc/self/fd").iterdir())) - files
        print(f"ready: blocked={len(blocked)} opened={opened}", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    service = Idle(WORKERS if trouble == "together" else 0)
    supervisor = Supervisor(Unused(), service, SupervisionRules(WORKERS), Hooks(on_ready=ready))
    if trouble == "together":
        supervisor._selector = Late()
    elif trouble == "fork":
        os.fork = failing_once(os.fork)
    elif trouble == "pipe":
        os.pipe = failing_once(os.pipe)
    files = len(list(Path("/proc/self/fd").iterdir()))
    supervisor.run()
    print("ended", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
