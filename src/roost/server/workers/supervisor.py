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
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from roost.model.errors import OperatorError
from roost.server.workers.beats import LOOK_SECONDS, RunClock
from roost.server.workers.listeners import Listeners
from roost.server.workers.notify import Notifier
from roost.server.workers.supervision import Supervision, SupervisionRules
from roost.server.workers.supervision_events import (
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
    Terminate,
    Tick,
    WorkerFailed,
)
from roost.server.workers.worker_process import (
    PARENT_SIGNALS,
    Configured,
    WorkerProcess,
    describe_end,
    fork_worker,
)

_LOG = structlog.get_logger()


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
    _processes: dict[int, WorkerProcess] = field(init=False, default_factory=dict)
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
                self._start(effect)
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

    def _start(self, start: StartWorker) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        service, sockets = self._services[start.generation], self.listeners.sockets
        try:
            process = fork_worker(service, sockets, start.slot, start.cause, self._close_in_worker)
        except OSError as error:
            self._events.append(NotStarted(start.worker, str(error)))
            return
        self._processes[start.worker] = process
        self._selector.register(
            process.reporting, selectors.EVENT_READ, lambda: self._take_report(start.worker)
        )

    def _close_in_worker(self) -> None:
        self._selector.close()
        for pipe in (*self._wakeups, *(each.reporting for each in self._processes.values())):
            if pipe != -1:
                os.close(pipe)

    def _signal(self, worker: int, number: signal.Signals) -> None:
        # The process is not reaped yet, so no other process can have its id.
        os.kill(self._processes[worker].pid, number)

    def _take_report(self, worker: int, *, ended: bool = False) -> None:
        """Read the report of a worker about its start. ``ended``: the worker has ended."""
        process = self._processes.get(worker)
        if process is None or process.reporting == -1:
            # A signal told of its end after the selector had named the pipe.
            return
        if not process.read_report(ended=ended):
            return
        self._selector.unregister(process.reporting)
        process.close_report()
        if process.is_ready:
            self._handle(Ready(worker))
        elif process.failure is not None:
            self._handle(WorkerFailed(worker, process.failure))

    def _reap(self) -> None:
        for worker, process in list(self._processes.items()):
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if not pid:
                continue
            while process.reporting != -1:
                self._take_report(worker, ended=True)
            self._handle(Ended(worker, describe_end(status)))
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
            memory = process.resident_memory()
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


@contextmanager
def _signals() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a pipe, to which the number of each arriving signal is written."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = {number: signal.signal(number, lambda *_: None) for number in PARENT_SIGNALS}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read, write
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
