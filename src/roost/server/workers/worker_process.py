"""A worker's process as its parent has it: the fork, the report of its start, its memory and its end."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

import structlog

from roost.server.workers.beats import Beats
from roost.server.workers.retirement import end_with_parent
from roost.server.workers.supervision_events import Cause

Report = Callable[[str | None], None]
"""Called once by a worker: with None when it can serve, or with the reason why it cannot."""

_LOG = structlog.get_logger()

PARENT_SIGNALS: Final = (
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that the parent handles, and that wait while it forks."""

_READY: Final = b"+"
_FAILED: Final = b"-"
_REPORT_BYTES: Final = 65536
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Configured(Protocol):
    """A service with its configuration."""

    def run(self, listener: socket.socket, report: Report, cause: Cause, beats: Beats) -> None:
        """Serve in this worker process until SIGTERM.

        The worker raises ``beats`` at least once a second while its event loop turns. On SIGHUP it first
        tells its clients to reconnect, because another worker replaces it.
        """

    def reread(self) -> "Configured":
        """Return the service with its configuration read again. Raises `OperatorError` if that is wrong."""


@dataclass
class WorkerProcess:
    """A worker's process. ``reporting``: the read end of the pipe of its report; -1 once it is read."""

    pid: int
    reporting: int
    beats: Beats
    _report: bytes = b""

    @property
    def is_ready(self) -> bool:
        """True if the worker has reported that it can serve."""
        return self._report[:1] == _READY

    @property
    def failure(self) -> str | None:
        """The reason why the worker cannot serve; None if it has reported none."""
        return self._report[1:].decode() if self._report[:1] == _FAILED else None

    def read_report(self, *, ended: bool) -> bool:
        """Read on in the report, which the worker writes once. Returns whether it is whole.

        ``ended``: the worker has ended. A process that it has started may still have the pipe open.
        """
        try:
            part = os.read(self.reporting, _REPORT_BYTES)
        except BlockingIOError:
            if not ended:
                return False
            part = b""
        self._report += part
        return not part

    def close_report(self) -> None:
        """Close the pipe of the report, which nothing may wait for any more."""
        os.close(self.reporting)
        self.reporting = -1

    def resident_memory(self) -> int | None:
        """Return the resident memory of the process in bytes, None if it has just ended."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:  # noqa: PTH123
                return int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError):
            return None


def fork_worker(
    service: Configured,
    sockets: Sequence[socket.socket],
    slot: int,
    cause: Cause,
    close_in_worker: Callable[[], None],
) -> WorkerProcess:
    """Start the process of a worker, which serves ``sockets[slot]`` and closes the others.

    ``close_in_worker``: closes in the worker the files that only the parent needs.

    Raises: `OSError` if the system has no process, memory or file descriptor left.
    """
    beats = Beats()
    read, write = os.pipe()
    parent = os.getpid()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, PARENT_SIGNALS)
    try:
        os.set_blocking(read, False)
        pid = os.fork()
        if pid == 0:

            def serve() -> None:
                os.close(read)
                _leave_parent(parent, blocked)
                close_in_worker()
                for other, each in enumerate(sockets):
                    if other != slot:
                        each.close()
                service.run(sockets[slot], _reporter(write), cause, beats)

            _run_worker(serve)
    except OSError:
        os.close(read)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(write)
    return WorkerProcess(pid, read, beats)


def _leave_parent(parent: int, blocked: set[signal.Signals | int]) -> None:
    """Reset in the worker the signals of its parent."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # These signals must not end the worker before it has handlers of its own.
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    end_with_parent(parent)


def _run_worker(serve: Callable[[], None]) -> NoReturn:
    """Serve in the worker's process, and end it."""
    status = 1
    try:
        serve()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        _LOG.error("a worker failed", exc_info=error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _reporter(pipe: int) -> Report:
    """Return the function with which a worker reports on its start through a pipe."""

    def report(failure: str | None) -> None:
        os.write(pipe, _READY if failure is None else _FAILED + failure.encode()[: _REPORT_BYTES // 2])
        os.close(pipe)

    return report


def describe_end(status: int) -> str:
    """Return the end of a process as text for the log. ``status``: as `os.waitpid` returns it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {number} ({signal.strsignal(number)})"
    return f"exit status {os.waitstatus_to_exitcode(status)}"
