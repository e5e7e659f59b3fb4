"""The parent process of a service: it performs the decisions of `supervision`.

Signals of the parent:

- SIGTERM, SIGINT: stop accepting, finish the requests under way, end.
- SIGHUP: read the configuration again, and replace one worker after another.
- SIGUSR1: ignored. SIGUSR2: every process writes its state to the log.

Workers are forks, so that a new one needs no time for imports. No thread of the parent may hold a lock that
workers need.
"""

import os
import selectors
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

import structlog

from roost.model.errors import OperatorError
from roost.server.workers.beats import LOOK_SECONDS, Beats, RunClock
from roost.server.workers.listeners import Listeners
from roost.server.workers.notify import Notifier
from roost.server.workers.retirement import end_with_parent
from roost.server.workers.supervision import (
    Cause,
    Effect,
    Ended,
    Event,
    Finished,
    Heard,
    Hung,
    Kill,
    Lost,
    Measured,
    NotStarted,
    OverLimit,
    Ready,
    Reload,
    ReloadAbandoned,
    Reloaded,
    Retire,
    ServiceStarted,
    StartWorker,
    Stop,
    Supervision,
    SupervisionRules,
    Terminate,
    Tick,
    WorkerFailed,
)

Report = Callable[[str | None], None]
"""Called once by a worker: with None when it can serve, or with the reason why it cannot."""

_LOG = structlog.get_logger()

_HANDLED: Final = (
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
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


def _nothing() -> None:
    pass


def _ignore(_pid: int) -> None:
    pass


@dataclass(frozen=True)
class Hooks:
    """Functions that the parent calls in its main thread.

    - ``on_ready``: called when all workers can serve.
    - ``on_worker_end``: called with the id of a worker's process that has ended.
    - ``on_report``: called to write the state of the parent to the log.
    """

    on_ready: Callable[[], None] = _nothing
    on_worker_end: Callable[[int], None] = _ignore
    on_report: Callable[[], None] = _nothing


@dataclass
class _Process:
    """A worker's process. ``reporting``: the read end of the pipe of its report."""

    pid: int
    reporting: int
    beats: Beats
    report: bytes = b""


@dataclass
class Supervisor:
    """A service and its workers.

    ``memory_check_seconds``: seconds between two checks of the memory of workers.
    """

    listeners: Listeners
    service: Configured
    rules: SupervisionRules
    hooks: Hooks = Hooks()
    memory_check_seconds: float = 5.0
    notifier: Notifier = field(default_factory=Notifier)
    _machine: Supervision = field(init=False)
    _events: deque[Event] = field(init=False, default_factory=deque)
    _processes: dict[int, _Process] = field(init=False, default_factory=dict)
    _services: dict[int, Configured] = field(init=False, default_factory=dict)
    _selector: selectors.BaseSelector = field(init=False, default_factory=selectors.DefaultSelector)
    _finished: Finished | None = field(init=False, default=None)
    _steered: frozenset[int] = field(init=False, default=frozenset())
    _clock: RunClock = field(init=False, default_factory=RunClock)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises `OperatorError` if the service cannot start."""
        self._machine = Supervision(self.rules)
        self._services[0] = self._newest = self.service
        self._generation = 0
        with _signals() as self._wakeups:
            self._selector.register(self._wakeups[0], selectors.EVENT_READ, self._take_signals)
            try:
                self._handle(Tick())
                self._loop()
            finally:
                self._selector.close()
                self.listeners.close()
        if self._finished is not None and self._finished.reason is not None:
            raise OperatorError(self._finished.reason)

    def _loop(self) -> None:
        checks_memory = self.rules.memory_limit is not None
        now = self._clock.now()
        next_look, next_measure = now + LOOK_SECONDS, now + self.memory_check_seconds
        while self._finished is None:
            due = self._machine.due
            at = next_look if due is None else min(due, next_look)
            for key, _ in self._selector.select(max(0.0, at - self._clock.now())):
                key.data()
            now = self._clock.now()
            if checks_memory and now >= next_measure:
                self._measure()
                next_measure = now + self.memory_check_seconds
            if now >= next_look:
                self._handle(Heard({worker: each.beats.count for worker, each in self._processes.items()}))
                next_look = now + LOOK_SECONDS
            self._handle(Tick())

    def _handle(self, event: Event) -> None:
        if self._finished is not None:
            return
        # A failing effect adds an event, which the machine gets after all effects of this event.
        self._events.append(event)
        while self._events:
            for effect in self._machine.handle(self._events.popleft(), self._clock.now()):
                self._perform(effect)
        serving = self._machine.serving_slots
        if serving and serving != self._steered:
            self._steered = serving
            self.listeners.steer(serving)
        self._services = {
            generation: each
            for generation, each in self._services.items()
            if generation in self._machine.generations
        }

    def _perform(self, effect: Effect) -> None:
        match effect:
            case StartWorker():
                self._start(effect, self._services[effect.generation])
            case Retire(worker):
                self._signal(worker, signal.SIGHUP)
            case Terminate(worker):
                self._signal(worker, signal.SIGTERM)
            case Kill(worker, late):
                pid = self._processes[worker].pid
                _LOG.warning(
                    "a worker did not do in time what it should, and is killed", pid=pid, should=late
                )
                self._signal(worker, signal.SIGKILL)
            case Hung(worker, seconds):
                pid = self._processes[worker].pid
                _LOG.error(
                    "the event loop of a worker does not turn; it is killed and replaced",
                    pid=pid,
                    seconds=round(seconds, 1),
                )
                self._signal(worker, signal.SIGKILL)
            case ServiceStarted():
                self.hooks.on_ready()
                self.notifier.ready()
            case Reloaded():
                _LOG.warning("all workers have the new configuration")
                self.notifier.ready()
            case ReloadAbandoned(reason):
                self._newest = self._services[min(self._machine.generations)]
                _LOG.error(
                    "no worker starts with the new configuration, the old one stays in use", reason=reason
                )
                self.notifier.ready()
            case OverLimit(worker, memory):
                pid = self._processes[worker].pid
                _LOG.warning("a worker is over its memory limit and is replaced", pid=pid, mib=memory >> 20)
            case Lost():
                self._log_lost(effect)
            case Finished():
                self._finished = effect

    # Processes of workers

    def _start(self, start: StartWorker, service: Configured) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid, read, beats = self._fork(start, service)
        except OSError as error:
            self._events.append(NotStarted(start.worker, str(error)))
            return
        os.set_blocking(read, False)
        self._processes[start.worker] = _Process(pid, read, beats)
        self._selector.register(read, selectors.EVENT_READ, lambda: self._take_report(start.worker))

    def _fork(self, start: StartWorker, service: Configured) -> tuple[int, int, Beats]:
        """Start the process of a worker; return its id, the read end of its report's pipe, and its beats.

        Raises: `OSError` if the system has no process, memory or file descriptor left.
        """
        beats = Beats()
        read, write = os.pipe()
        parent = os.getpid()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            pid = os.fork()
            if pid == 0:
                os.close(read)
                self._become_worker(start, service, write, beats, parent, blocked)
        except OSError:
            os.close(read)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(write)
        return pid, read, beats

    def _become_worker(
        self,
        start: StartWorker,
        service: Configured,
        write: int,
        beats: Beats,
        parent: int,
        blocked: set[signal.Signals | int],
    ) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            # These signals must not end the worker before it has handlers of its own.
            for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            end_with_parent(parent)
            self._selector.close()
            for pipe in (*self._wakeups, *(each.reporting for each in self._processes.values())):
                if pipe != -1:
                    os.close(pipe)
            for other, each in enumerate(self.listeners.sockets):
                if other != start.slot:
                    each.close()
            service.run(self.listeners.sockets[start.slot], _reporter(write), start.cause, beats)
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except BaseException as error:
            _LOG.error("a worker failed", exc_info=error)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _signal(self, worker: int, number: signal.Signals) -> None:
        # The process is not reaped yet, so no other process can have its id.
        os.kill(self._processes[worker].pid, number)

    def _take_report(self, worker: int, *, ended: bool = False) -> None:
        """Read the report of a worker about its start. The worker writes it once and closes the pipe.

        ``ended``: the worker has ended. A process that it has started may still have the pipe open.
        """
        process = self._processes.get(worker)
        if process is None or process.reporting == -1:
            # A signal told of its end after the selector had named the pipe.
            return
        try:
            part = os.read(process.reporting, _REPORT_BYTES)
        except BlockingIOError:
            if not ended:
                return
            part = b""
        process.report += part
        if part:
            return
        self._selector.unregister(process.reporting)
        os.close(process.reporting)
        process.reporting = -1
        if process.report[:1] == _READY:
            self._handle(Ready(worker))
        elif process.report[:1] == _FAILED:
            self._handle(WorkerFailed(worker, process.report[1:].decode()))

    def _reap(self) -> None:
        for worker, process in list(self._processes.items()):
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if not pid:
                continue
            while process.reporting != -1:
                self._take_report(worker, ended=True)
            self._handle(Ended(worker, _describe(status)))
            process.beats.close()
            del self._processes[worker]
            self.hooks.on_worker_end(pid)

    def _log_lost(self, lost: Lost) -> None:
        pause = round(lost.pause, 1)
        process = self._processes.get(lost.worker)
        if process is None:
            _LOG.error("the process of a worker cannot be started", reason=lost.how, pause_seconds=pause)
        elif lost.reason is None:
            _LOG.error(
                "a worker ended and is started again", pid=process.pid, how=lost.how, pause_seconds=pause
            )
        else:
            _LOG.error("a worker could not start", pid=process.pid, reason=lost.reason, pause_seconds=pause)

    def _measure(self) -> None:
        for worker, process in list(self._processes.items()):
            memory = _resident_memory(process.pid)
            if memory is not None:
                self._handle(Measured(worker, memory))

    # Signals

    def _take_signals(self) -> None:
        for received in os.read(self._wakeups[0], 1024):
            match received:
                case signal.SIGCHLD:
                    self._reap()
                case signal.SIGTERM | signal.SIGINT:
                    self._stop()
                case signal.SIGHUP:
                    self._reload()
                case signal.SIGUSR2:
                    self.hooks.on_report()
                    for worker in self._processes:
                        self._signal(worker, signal.SIGUSR2)

    def _stop(self) -> None:
        self.notifier.stopping()
        self.listeners.close()
        self._handle(Stop())

    def _reload(self) -> None:
        self.notifier.reloading()
        try:
            self._newest = self._newest.reread()
        except OperatorError as error:
            _LOG.error("the new configuration is wrong, the old one stays in use", reason=str(error))
            self.notifier.ready()
            return
        self._generation += 1
        self._services[self._generation] = self._newest
        self._handle(Reload())


def _reporter(pipe: int) -> Report:
    """Return the function with which a worker reports on its start through a pipe."""

    def report(failure: str | None) -> None:
        os.write(pipe, _READY if failure is None else _FAILED + failure.encode()[: _REPORT_BYTES // 2])
        os.close(pipe)

    return report


def _describe(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {number} ({signal.strsignal(number)})"
    return f"exit status {os.waitstatus_to_exitcode(status)}"


def _resident_memory(pid: int) -> int | None:
    """Return the resident memory of a process in bytes, None if it has just ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


@contextmanager
def _signals() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a pipe, to which the number of each arriving signal is written."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = {number: signal.signal(number, lambda *_: None) for number in _HANDLED}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read, write
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
