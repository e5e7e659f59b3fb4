"""The supervision of workers: single rules, and thousands of schedules drawn from seeds."""

import heapq
from collections import Counter
from random import Random

import pytest

from roost.server.workers.supervision import FIRST_PAUSE, Supervision, SupervisionRules
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
from support.seeds import nightly_seed

MIB = 1 << 20
RULES = SupervisionRules(workers=2, drain_seconds=10.0, linger_seconds=1.0, memory_limit=100 * MIB)


def serving(rules: SupervisionRules = RULES) -> Supervision:
    """A service with two workers, 1 and 2, that are ready since second 0."""
    machine = Supervision(rules)
    assert machine.handle(Tick(), 0.0) == [StartWorker(1, 0, 0, "start"), StartWorker(2, 1, 0, "start")]
    assert machine.handle(Ready(1), 0.0) == []
    assert machine.handle(Ready(2), 0.0) == [ServiceStarted()]
    return machine


def test_a_worker_that_ends_is_started_again_at_once() -> None:
    machine = serving()
    assert machine.handle(Ended(1, "signal 9"), 5.0) == [
        Lost(1, "signal 9", 0.0, None),
        StartWorker(3, 0, 0, "ended"),
    ]


def test_a_worker_whose_loop_does_not_turn_is_killed_and_replaced() -> None:
    machine = serving()
    assert machine.handle(Heard({1: 5, 2: 5}), 5.0) == []
    assert machine.handle(Heard({1: 6, 2: 5}), 14.0) == []
    assert machine.handle(Heard({1: 7, 2: 5}), 15.0) == [Hung(2, 10.0), StartWorker(3, 1, 0, "hung")]
    assert machine.serving_slots == {0}
    assert machine.handle(Ended(2, "signal 9"), 15.1) == []
    assert machine.handle(Ready(3), 16.0) == []
    assert machine.handle(Heard({1: 8, 3: 1}), 24.9) == []
    assert machine.due is None


def test_of_workers_that_all_hang_one_is_replaced_at_a_time() -> None:
    machine = serving()
    assert machine.handle(Heard({1: 5, 2: 5}), 1.0) == []
    assert machine.handle(Heard({1: 5, 2: 5}), 11.0) == [Hung(1, 10.0), StartWorker(3, 0, 0, "hung")]
    assert machine.handle(Heard({2: 5, 3: 0}), 40.0) == []
    assert machine.handle(Ready(3), 41.0) == []
    assert machine.handle(Heard({2: 5, 3: 1}), 42.0) == [Hung(2, 41.0), StartWorker(4, 1, 0, "hung")]


def test_a_worker_that_turns_again_in_time_stays() -> None:
    machine = serving()
    for second, beats in enumerate((1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3), 1):
        assert machine.handle(Heard({1: beats, 2: beats}), float(second)) == []


def test_a_worker_that_starts_or_ends_is_not_judged_by_its_beats() -> None:
    machine = serving()
    machine.handle(Reload(), 1.0)
    assert machine.handle(Heard({1: 1, 2: 1, 3: 0}), 2.0) == []
    assert machine.handle(Heard({1: 2, 2: 2, 3: 0}), 50.0) == []
    assert machine.handle(Ready(3), 51.0) == [Retire(1), StartWorker(4, 1, 1, "reload")]
    assert machine.handle(Heard({1: 2, 2: 3, 3: 1, 4: 0}), 61.0) == []


def test_a_hung_worker_that_is_being_replaced_is_not_started_twice() -> None:
    machine = serving()
    assert machine.handle(Reload(), 1.0) == [StartWorker(3, 0, 1, "reload")]
    assert machine.handle(Heard({1: 0, 2: 1}), 10.0) == [Hung(1, 10.0)]
    assert machine.handle(Ended(1, "signal 9"), 10.1) == []
    assert machine.handle(Ready(3), 11.0) == [StartWorker(4, 1, 1, "reload")]
    assert machine.serving_slots == {0, 1}


def test_the_service_never_gives_up_once_it_has_served() -> None:
    machine, now, worker = serving(), 5.0, 1
    pauses = []
    for _ in range(50):
        effects = machine.handle(Ended(worker, "signal 11"), now)
        [lost] = [each for each in effects if isinstance(each, Lost)]
        pauses.append(lost.pause)
        now += lost.pause
        effects += machine.handle(Tick(), now)
        [worker] = [each.worker for each in effects if isinstance(each, StartWorker)]
    assert pauses[:4] == [0.0, FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert set(pauses[6:]) == {1.0}


def test_a_reason_at_the_first_start_ends_the_service() -> None:
    machine = Supervision(RULES)
    machine.handle(Tick(), 0.0)
    machine.handle(Ready(2), 1.0)
    assert machine.handle(WorkerFailed(1, "no such table"), 1.0) == []
    assert machine.handle(Ended(1, "exit status 1"), 1.0) == [Terminate(2)]
    assert machine.handle(Ended(2, "exit status 0"), 2.0) == [Finished("no such table")]


def test_a_first_start_that_ends_without_a_reason_is_tried_again_but_not_for_ever() -> None:
    machine = Supervision(SupervisionRules(workers=1, attempts=2))
    machine.handle(Tick(), 0.0)
    assert machine.handle(Ended(1, "signal 9"), 0.0) == [Lost(1, "signal 9", FIRST_PAUSE, None)]
    assert machine.due == FIRST_PAUSE
    assert machine.handle(Tick(), FIRST_PAUSE) == [StartWorker(2, 0, 0, "start")]
    assert machine.handle(Ended(2, "signal 9"), 1.0) == [
        Finished("a worker ended before it could serve: signal 9")
    ]


def test_a_reload_replaces_one_worker_after_the_other_and_none_before_its_replacement_is_ready() -> None:
    machine = serving()
    assert machine.handle(Reload(), 5.0) == [StartWorker(3, 0, 1, "reload")]
    assert machine.handle(Ready(3), 6.0) == [Retire(1), StartWorker(4, 1, 1, "reload")]
    assert machine.handle(Ended(1, "exit status 0"), 7.0) == []
    assert machine.handle(Ready(4), 8.0) == [Retire(2), Reloaded(1)]
    assert machine.due == 8.0 + 1.0 + 10.0
    assert machine.handle(Tick(), 19.0) == [Kill(2, "end")]
    assert machine.due is None


def test_a_configuration_with_which_no_worker_starts_is_abandoned() -> None:
    machine = serving()
    machine.handle(Reload(), 5.0)
    machine.handle(WorkerFailed(3, "no Keystone"), 6.0)
    assert machine.handle(Ended(3, "exit status 1"), 6.0) == [
        Lost(3, "exit status 1", FIRST_PAUSE, "no Keystone"),
        ReloadAbandoned("no Keystone"),
    ]
    assert machine.handle(Ended(2, "signal 9"), 20.0) == [
        Lost(2, "signal 9", 0.0, None),
        StartWorker(4, 1, 0, "ended"),
    ]
    assert machine.handle(Reload(), 21.0) == [StartWorker(5, 0, 2, "reload")]


def test_a_reload_whose_workers_die_without_a_reason_is_abandoned_after_some_attempts() -> None:
    machine, now = serving(SupervisionRules(workers=2, attempts=3)), 5.0
    effects = machine.handle(Reload(), now)
    for left in (2, 1, 0):
        [worker] = [each.worker for each in effects if isinstance(each, StartWorker)]
        effects = machine.handle(Ended(worker, "signal 11"), now)
        assert any(isinstance(each, ReloadAbandoned) for each in effects) == (left == 0)
        while left and not any(isinstance(each, StartWorker) for each in effects):
            assert machine.due is not None
            now = machine.due
            effects += machine.handle(Tick(), now)
    assert effects[1:] == [ReloadAbandoned("a worker ended before it could serve: signal 11")]
    assert machine.due is None


def test_a_worker_that_does_not_start_in_time_is_killed_and_ends_a_reload() -> None:
    machine = serving(SupervisionRules(workers=2, start_seconds=60.0, attempts=1))
    assert machine.handle(Reload(), 5.0) == [StartWorker(3, 0, 1, "reload")]
    assert machine.due == 65.0
    assert machine.handle(Tick(), 65.0) == [Kill(3, "start")]
    assert machine.due is None
    *_, abandoned = machine.handle(Ended(3, "signal 9"), 65.0)
    assert abandoned == ReloadAbandoned("a worker ended before it could serve: signal 9")
    assert machine.due is None


def test_a_worker_that_is_ready_after_its_reload_was_abandoned_is_replaced() -> None:
    machine = serving(SupervisionRules(workers=2, attempts=1))
    assert machine.handle(Reload(), 5.0) == [StartWorker(3, 0, 1, "reload")]
    assert machine.handle(Reload(), 6.0) == []
    assert machine.handle(Ready(3), 7.0) == [Retire(1), StartWorker(4, 0, 2, "reload")]
    # Generation 1 has served, but only the one that is wanted counts as one to go back to.
    assert machine.generations == {0, 2}


def test_the_end_of_an_old_worker_does_not_abandon_a_reload() -> None:
    machine = serving(SupervisionRules(workers=2, attempts=1))
    assert machine.handle(Reload(), 5.0) == [StartWorker(3, 0, 1, "reload")]
    assert machine.handle(Ended(2, "signal 9"), 5.0) == [
        Lost(2, "signal 9", 0.0, None),
        StartWorker(4, 1, 1, "ended"),
    ]


def test_a_process_that_the_system_cannot_start_is_tried_again_and_abandons_no_reload() -> None:
    machine, now, worker = serving(SupervisionRules(workers=2, attempts=2)), 5.0, 3
    machine.handle(Reload(), now)
    for _ in range(10):
        effects = machine.handle(NotStarted(worker, "no memory"), now)
        assert isinstance(effects[0], Lost) and effects[0].pause > 0.0
        if len(effects) == 1:
            assert machine.due is not None
            now = max(now, machine.due)
            effects += machine.handle(Tick(), now)
        [worker] = [each.worker for each in effects if isinstance(each, StartWorker)]
        assert not any(isinstance(each, ReloadAbandoned) for each in effects)


def test_a_service_whose_first_process_cannot_be_started_gives_up_and_says_why() -> None:
    machine = Supervision(SupervisionRules(workers=1, attempts=2))
    machine.handle(Tick(), 0.0)
    assert machine.handle(NotStarted(1, "no memory"), 0.0) == [Lost(1, "no memory", FIRST_PAUSE, None)]
    assert machine.handle(Tick(), FIRST_PAUSE) == [StartWorker(2, 0, 0, "start")]
    assert machine.handle(NotStarted(2, "no memory"), 1.0) == [
        Finished("a worker cannot be started: no memory")
    ]


def test_a_worker_over_its_memory_limit_is_replaced_first_and_ends_then() -> None:
    machine = serving()
    assert machine.handle(Measured(1, 200 * MIB), 9.0) == []
    assert machine.handle(Measured(1, 100 * MIB), 30.0) == []
    assert machine.handle(Measured(1, 200 * MIB), 30.0) == [
        OverLimit(1, 200 * MIB),
        StartWorker(3, 0, 0, "memory"),
    ]
    assert machine.handle(Measured(1, 300 * MIB), 31.0) == []
    assert machine.handle(Ready(3), 32.0) == [Retire(1)]
    assert machine.handle(Measured(3, 200 * MIB), 33.0) == []


def test_stop_ends_all_workers_and_kills_those_that_stay() -> None:
    machine = serving()
    assert machine.handle(Stop(), 5.0) == [Terminate(1), Terminate(2)]
    assert machine.handle(Stop(), 6.0) == []
    assert machine.handle(Ended(1, "exit status 0"), 6.0) == []
    assert machine.handle(Tick(), 15.0) == [Kill(2, "end")]
    assert machine.handle(Tick(), 16.0) == []
    assert machine.handle(Ended(2, "signal 9"), 16.0) == [Finished(None)]


class World:
    """Simulated processes and an operator. What it does is drawn from a seed.

    Until ``calm``, workers are killed, fail, grow or hang, and the operator reloads. Later nothing is wrong.
    """

    calm = 100.0

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules = SupervisionRules(
            workers=self.random.randint(1, 4),
            drain_seconds=self.random.choice((0.0, 2.0, 10.0)),
            memory_limit=self.random.choice((None, 100 * MIB)),
            memory_rest_seconds=self.random.choice((2.0, 30.0)),
        )
        self.machine = Supervision(self.rules)
        self.now = 0.0
        self.queue: list[tuple[float, int, Event]] = []
        self.alive: dict[int, StartWorker] = {}
        self.ready: dict[int, StartWorker] = {}
        self.asked: set[int] = set()
        self.starts: dict[int, list[float]] = {slot: [] for slot in range(self.rules.workers)}
        self.effects: list[Effect] = []
        self.bad_generations: set[int] = set()
        self.generation = self.number = self.beats = 0

    def at(self, seconds: float, event: Event) -> None:
        self.number += 1
        heapq.heappush(self.queue, (self.now + seconds, self.number, event))

    def give(self, event: Event) -> None:
        """Give an event to the machine, unless its worker is gone or has no more to say."""
        worker = getattr(event, "worker", None)
        if worker is not None and worker not in self.alive:
            return
        if isinstance(event, Ready):
            self.ready[event.worker] = self.alive[event.worker]
        elif isinstance(event, Ended | NotStarted):
            self.ready.pop(event.worker, None)
            del self.alive[event.worker]
        for effect in self.machine.handle(event, self.now):
            self.effects.append(effect)
            self.perform(effect)
        self.check()

    def perform(self, effect: Effect) -> None:
        draw = self.random
        match effect:
            case StartWorker(worker, slot, generation, _):
                self.alive[worker] = effect
                self.starts[slot].append(self.now)
                chaos = self.now < self.calm and self.machine_has_served()
                if generation in self.bad_generations or (chaos and draw.random() < 0.1):
                    self.at(0.3, WorkerFailed(worker, "reason"))
                    self.at(0.4, Ended(worker, "exit status 1"))
                elif chaos and draw.random() < 0.05:
                    self.at(0.0, NotStarted(worker, "no memory"))
                elif chaos and draw.random() < 0.1:
                    self.at(draw.random(), Ended(worker, "signal 9"))
                else:
                    self.at(draw.uniform(0.1, 3.0), Ready(worker))
            case Retire(worker):
                # The slot has another worker that serves.
                assert [
                    key
                    for key, each in self.ready.items()
                    if each.slot == self.alive[worker].slot and key not in self.asked | {worker}
                ]
                self.end(worker)
            case Terminate(worker):
                self.end(worker)
            case Hung(worker, _):
                assert worker in self.ready, "only a worker that serves is judged by its beats"
                self.asked.add(worker)
                self.at(0.1, Ended(worker, "signal 9"))
            case Kill(worker, _):
                assert worker in self.asked
                self.at(0.1, Ended(worker, "signal 9"))

    def end(self, worker: int) -> None:
        self.asked.add(worker)
        if self.random.random() < 0.8:
            self.at(self.random.uniform(0.0, 3.0), Ended(worker, "exit status 0"))

    def machine_has_served(self) -> bool:
        return ServiceStarted() in self.effects

    def check(self) -> None:
        staying = Counter(each.slot for key, each in self.alive.items() if key not in self.asked)
        assert all(count <= 2 for count in staying.values()), "more than one replacement in a slot"
        assert sum(count > 1 for count in staying.values()) <= 1, "two replacements at a time"
        due = self.machine.due
        assert due is None or due > self.now - 1e-9 or any(due <= at for at, _, _ in self.queue)

    def run_until(self, end: float) -> None:
        while True:
            due = self.machine.due
            next_event = self.queue[0][0] if self.queue else end
            if due is not None and due < min(next_event, end):
                assert due >= self.now, "a tick did not do what was due"
                self.now = due
                self.give(Tick())
                assert self.machine.due is None or self.machine.due > self.now, (
                    "a tick leaves work that is due"
                )
            elif next_event <= end and self.queue:
                self.now, _, event = heapq.heappop(self.queue)
                self.give(event)
            else:
                self.now = end
                return

    def trouble(self) -> None:
        """Let the operator, or fate, do something."""
        draw = self.random
        match draw.randrange(5):
            case 4 if self.ready:
                # Nobody turns, or one of them does not.
                still = draw.choice((None, draw.choice(sorted(self.ready))))
                self.beats += 1
                self.give(Heard({key: self.beats for key in self.ready if still not in (None, key)}))
            case 0 if self.alive:
                self.give(Ended(draw.choice(sorted(self.alive)), "signal 9"))
            case 1:
                self.generation += 1
                if draw.random() < 0.3:
                    self.bad_generations.add(self.generation)
                self.give(Reload())
            case 2 if self.ready:
                self.give(Measured(draw.choice(sorted(self.ready)), draw.choice((50, 150)) * MIB))


def run_schedule(seed: int) -> Counter[str]:
    world = World(seed)
    world.give(Tick())
    world.run_until(20.0)
    assert world.machine_has_served()
    while world.now < world.calm:
        world.trouble()
        world.run_until(world.now + world.random.expovariate(1.0))
    world.run_until(world.calm + 100.0)
    # All slots serve, each with one worker of the newest configuration that works.
    staying = {key: each for key, each in world.ready.items() if key not in world.asked}
    assert sorted(each.slot for each in staying.values()) == list(range(world.rules.workers))
    [generation] = {each.generation for each in staying.values()}
    assert generation not in world.bad_generations
    assert set(world.alive) == set(staying)
    assert world.machine.due is None
    for times in world.starts.values():
        for first, fifth in zip(times, times[20:], strict=False):
            assert fifth - first > 2.0, "a slot starts workers without a bound"
    world.give(Stop())
    world.run_until(world.now + world.rules.drain_seconds + 5.0)
    assert not world.alive
    assert [each for each in world.effects if isinstance(each, Finished)] == [Finished(None)]
    return Counter(type(each).__name__ for each in world.effects)


def test_schedules_keep_the_promises() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        seen += run_schedule(seed)
    for effect in (Hung, Kill, Lost, OverLimit, Reloaded, ReloadAbandoned, Retire):
        assert seen[effect.__name__] > 20, f"the schedules hardly see {effect.__name__}: {seen}"


@pytest.mark.nightly
def test_many_schedules_keep_the_promises() -> None:
    for number in range(20_000):
        run_schedule(nightly_seed() * 1_000_003 + number)
