"""The decisions of a parent process about its workers, as a state machine: events in, effects out.

The machine does no I/O and reads no clock. Each *slot* has one worker that serves. A slot is empty after its
worker ended, and has two workers while one replaces the other::

    StartWorker ─▶ starting ──Ready──▶ ready ──(replaced, or Stop)──▶ leaving ──Ended──▶ gone
                      └──Ended──▶ gone; the slot starts another, after a pause

A worker is replaced after `Reload` and when it uses more memory than the limit. The old worker stays until
its replacement is ready, and one slot is replaced at a time. So every slot keeps serving, and the machine
needs the memory of one more worker only.

A ready worker whose event loop does not turn is killed, and its slot starts another one. This is done in one
slot at a time: if all workers hang for one cause, the first replacement shows whether restarts help.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from roost.server.workers.supervision_events import (
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
    Terminate,
    WorkerFailed,
)


@dataclass(frozen=True)
class SupervisionRules:
    """The limits of the supervision.

    - ``workers``: the number of slots.
    - ``start_seconds``: seconds that a worker has until it can serve; then it is killed.
    - ``drain_seconds``: seconds that a worker has to end; then it is killed.
    - ``linger_seconds``: seconds that a replaced worker has in addition, to tell its clients to reconnect.
    - ``silent_seconds``: seconds in which the event loop of a ready worker must turn; then it is killed and
      replaced.
    - ``memory_limit``: bytes of resident memory past which a worker is replaced. None: there is no limit.
    - ``memory_rest_seconds``: seconds after its start in which a worker is not replaced for its memory. They
      bound the rate of replacements if the limit is below what every worker needs.
    - ``steady_seconds``: seconds that a worker must have been ready; if it ends sooner, its start counts as
      failed.
    - ``attempts``: failed starts of a slot, before all slots have served once, after which the service gives
      up. Also the number of workers with a new configuration that end without a reason, before one of them
      could serve, after which the reload is abandoned.
    """

    workers: int
    start_seconds: float = 600.0
    drain_seconds: float = 30.0
    linger_seconds: float = 1.0
    silent_seconds: float = 10.0
    memory_limit: int | None = None
    memory_rest_seconds: float = 10.0
    steady_seconds: float = 1.0
    attempts: int = 3


FIRST_PAUSE: Final = 0.1
"""Seconds before a slot starts a worker again after one failed start. Each further one doubles the pause."""

LONGEST_PAUSE: Final = 1.0
"""Longest pause, in seconds, after workers that ended without a reason, as by a signal."""

LONGEST_PAUSE_WITH_REASON: Final = 5.0
"""Longest pause, in seconds, after workers that could not start, as when the database does not answer."""


@dataclass
class _Worker:
    slot: int
    generation: int
    phase: Literal["starting", "ready", "leaving"] = "starting"
    ready_at: float = 0.0
    beats: int = 0
    beat_at: float = 0.0
    kill_at: float = 0.0
    killed: bool = False
    over_limit: bool = False
    reason: str | None = None


@dataclass
class _Slot:
    """The state of a slot.

    ``failures``: failed starts in a row. ``not_before``: time before which it may not start a worker.
    ``hung``: its worker was killed because it hung, and its successor is not ready yet.
    """

    failures: int = 0
    not_before: float = 0.0
    hung: bool = False


class Supervision:
    """The state of all workers of a service.

    ``handle`` must be called with each event, and with `Tick` when ``due`` has come. Times are seconds of a
    monotonic clock that stands still while the parent does, as `RunClock`: with another clock, all workers
    would look late after a pause of the whole machine.
    """

    def __init__(self, rules: SupervisionRules) -> None:
        self._rules = rules
        self._slots = [_Slot() for _ in range(rules.workers)]
        self._workers: dict[int, _Worker] = {}
        self._started = 0
        self._generation = 0
        self._proven = 0
        self._last_generation = 0
        self._deaths = 0
        """Workers of the newest generation that ended while none of it could serve."""
        self._serving = self._reloading = self._stopping = self._finished = False
        self._reason: str | None = None

    @property
    def generations(self) -> frozenset[int]:
        """The generations whose configuration a worker may still need."""
        return frozenset((self._generation, self._proven))

    @property
    def serving_slots(self) -> frozenset[int]:
        """The slots with a worker that accepts connections; empty while the service stops."""
        return frozenset(each.slot for each in self._workers.values() if each.phase == "ready")

    @property
    def due(self) -> float | None:
        """The time of the next `Tick`, None if nothing waits for a time."""
        times = [each.kill_at for each in self._workers.values() if each.phase != "ready" and not each.killed]
        if not self._stopping:
            times += [
                slot.not_before
                for number, slot in enumerate(self._slots)
                if not self._in_slot(number) or (self._is_stale(number) and not self._replaces())
            ]
        return min(times, default=None)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Process an event at a time ``now``, and return the effects to perform, in this order."""
        effects: list[Effect] = []
        match event:
            case Ready(worker):
                self._ready(worker, now, effects)
            case WorkerFailed(worker, reason):
                self._workers[worker].reason = reason
            case Ended(worker, how):
                self._ended(worker, how, now, effects)
            case NotStarted(worker, how):
                # This error says nothing about the configuration, so a reload goes on.
                self._ended(worker, how, now, effects, ran=False)
            case Measured(worker, memory):
                self._measured(worker, memory, now, effects)
            case Heard(beats):
                self._heard(beats, now, effects)
            case Reload():
                self._last_generation += 1
                self._generation = self._last_generation
                self._reloading = True
                self._deaths = 0
            case Stop():
                self._stop(now, effects)
        self._converge(now, effects)
        return effects

    def _ready(self, number: int, now: float, effects: list[Effect]) -> None:
        worker = self._workers[number]
        if worker.phase != "starting":
            return
        replaced = [key for key in self._in_slot(worker.slot) if key != number]
        worker.phase, worker.ready_at, worker.beat_at = "ready", now, now
        self._slots[worker.slot].hung = False
        if worker.generation == self._generation:  # not one of a reload that was abandoned meanwhile
            self._proven = worker.generation
        for other in replaced:
            self._workers[other].phase = "leaving"
            self._workers[other].kill_at = now + self._rules.linger_seconds + self._rules.drain_seconds
            effects.append(Retire(other))
        if not self._serving and self._all_ready():
            self._serving = True
            effects.append(ServiceStarted())

    def _ended(self, number: int, how: str, now: float, effects: list[Effect], *, ran: bool = True) -> None:
        worker = self._workers.pop(number)
        if self._stopping or worker.phase == "leaving":
            return
        slot = self._slots[worker.slot]
        steady = worker.phase == "ready" and now - worker.ready_at >= self._rules.steady_seconds
        slot.failures = 0 if steady else slot.failures + 1
        early = f"a worker {'ended before it could serve' if ran else 'cannot be started'}: {how}"
        if not self._serving and (worker.reason is not None or slot.failures >= self._rules.attempts):
            self._reason = worker.reason or early
            self._stop(now, effects)
            return
        longest = LONGEST_PAUSE if worker.reason is None else LONGEST_PAUSE_WITH_REASON
        pause = min(FIRST_PAUSE * 2.0 ** (slot.failures - 1), longest) if slot.failures else 0.0
        slot.not_before = now + pause
        effects.append(Lost(number, how, pause, worker.reason))
        if not (self._reloading and ran and worker.generation == self._generation > self._proven):
            return
        self._deaths += 1
        if worker.reason is not None or self._deaths >= self._rules.attempts:
            self._generation = self._proven
            self._reloading = False
            slot.failures, slot.not_before = 0, now
            effects.append(ReloadAbandoned(worker.reason or early))

    def _measured(self, number: int, memory: int, now: float, effects: list[Effect]) -> None:
        worker, limit = self._workers.get(number), self._rules.memory_limit
        if worker is None or limit is None or worker.phase != "ready" or worker.over_limit:
            return
        if memory > limit and now - worker.ready_at >= self._rules.memory_rest_seconds:
            worker.over_limit = True
            effects.append(OverLimit(number, memory))

    def _heard(self, beats: Mapping[int, int], now: float, effects: list[Effect]) -> None:
        for number, worker in self._workers.items():
            count = beats.get(number, worker.beats)
            if count != worker.beats:
                worker.beats, worker.beat_at = count, now
        for number, worker in self._workers.items():
            silent = now - worker.beat_at
            if (
                worker.phase == "ready"
                and silent >= self._rules.silent_seconds
                and not any(slot.hung for slot in self._slots)
            ):
                self._slots[worker.slot].hung = True
                worker.phase, worker.kill_at, worker.killed = "leaving", now, True
                effects.append(Hung(number, silent))

    def _stop(self, now: float, effects: list[Effect]) -> None:
        if self._stopping:
            return
        self._stopping = True
        for number, worker in self._workers.items():
            worker.kill_at = now + self._rules.drain_seconds
            worker.phase = "leaving"
            effects.append(Terminate(number))

    def _converge(self, now: float, effects: list[Effect]) -> None:
        """Add the effects that the state requires, independent of the event that led to it."""
        for number, worker in self._workers.items():
            if worker.phase != "ready" and not worker.killed and now >= worker.kill_at:
                worker.killed = True
                effects.append(Kill(number, "start" if worker.phase == "starting" else "end"))
        if self._stopping:
            if not self._workers and not self._finished:
                self._finished = True
                effects.append(Finished(self._reason))
            return
        for number, slot in enumerate(self._slots):
            may_start = now >= slot.not_before
            if may_start and (not self._in_slot(number) or (self._is_stale(number) and not self._replaces())):
                effects.append(self._start(number, now))
        if self._reloading and self._all_ready():
            self._reloading = False
            effects.append(Reloaded(self._generation))

    def _start(self, slot: int, now: float) -> StartWorker:
        cause = self._cause(slot)
        self._started += 1
        kill_at = now + self._rules.start_seconds
        self._workers[self._started] = _Worker(slot, self._generation, kill_at=kill_at)
        return StartWorker(self._started, slot, self._generation, cause)

    def _cause(self, slot: int) -> Cause:
        replaced = [self._workers[key] for key in self._in_slot(slot)]
        if replaced:
            return "memory" if replaced[0].over_limit else "reload"
        if self._slots[slot].hung:
            return "hung"
        return "ended" if self._serving else "start"

    def _in_slot(self, slot: int) -> list[int]:
        """Return the workers of a slot that serve or are starting."""
        return [key for key, each in self._workers.items() if each.slot == slot and each.phase != "leaving"]

    def _is_stale(self, slot: int) -> bool:
        """Return whether the worker of a slot serves, must be replaced, and has no replacement yet."""
        workers = [self._workers[key] for key in self._in_slot(slot)]
        return len(workers) == 1 and workers[0].phase == "ready" and self._is_outdated(workers[0])

    def _is_outdated(self, worker: _Worker) -> bool:
        return worker.generation != self._generation or worker.over_limit

    def _replaces(self) -> bool:
        """Return whether a worker is starting to replace another one or one that hung."""
        return any(each.hung or len(self._in_slot(slot)) > 1 for slot, each in enumerate(self._slots))

    def _all_ready(self) -> bool:
        """Return whether each slot has one worker, which serves with the current configuration."""
        for slot in range(len(self._slots)):
            workers = [self._workers[key] for key in self._in_slot(slot)]
            if len(workers) != 1 or workers[0].phase != "ready" or workers[0].generation != self._generation:
                return False
        return True
