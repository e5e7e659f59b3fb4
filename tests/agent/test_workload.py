"""Orders to stop and to start guests, and builds that wait for their confirmation.

No order is carried out twice or undone by a late answer, and each result is kept until the cell has it.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from roost.agent.errors import CannotStopGuests, NoSuchGuest
from roost.agent.protocol.questions import Confirm, Poll
from roost.agent.protocol.types import (
    Build,
    Destroy,
    Destroyed,
    Order,
    PowerResult,
    ReceiveGuest,
    SessionKey,
    StartGuest,
    StopGuest,
)
from roost.agent.workload import OVERTIME, AgentWorkload
from roost.model.instance import BuildResult, Instance
from support.cells import instance
from support.stepped_contexts import SteppedContext, Wait

SESSION = SessionKey("a", "nonce", 1)
STOP, START = StopGuest("i", 1), StartGuest(instance())


class Machine:
    """A hypervisor with guest i of attempt 1. Calls raise ``failures``; the next one runs ``during``."""

    def __init__(self) -> None:
        self.running, self.stopped = {"i": 1}, dict[str, int]()
        self.failures = deque[Exception]()
        self.during: Callable[[], None] | None = None
        self.calls: list[str] = []
        self.released: list[str] = []

    def call(self, method: str, *arguments: Any) -> Any:
        if method == "guests":
            return dict(self.running)
        self.calls.append(method)
        if self.during is not None:
            during, self.during = self.during, None
            during()
        if self.failures:
            raise self.failures.popleft()
        return getattr(self, method)(*arguments)

    def prepare(self, _: Instance, beside: int | None = None) -> None:
        """Nothing is needed."""

    def start(self, wanted: Instance) -> None:
        self.running[wanted.uuid] = wanted.attempt

    def stop(self, uuid: str) -> None:
        if uuid not in self.running | self.stopped:
            raise NoSuchGuest(f"there is no guest {uuid}")
        if uuid in self.running:
            self.stopped[uuid] = self.running.pop(uuid)

    def receive(self, wanted: Instance) -> None:
        self.running[wanted.uuid] = wanted.attempt

    def start_again(self, wanted: Instance, over: int) -> None:
        if self.stopped.pop(wanted.uuid, None) != wanted.attempt:
            raise NoSuchGuest(f"there is no guest {wanted.uuid}")
        self.running[wanted.uuid] = wanted.attempt

    def destroy(self, uuid: str, ports: str, attempt: int | None = None) -> None:
        self.released.append(ports)
        self.running.pop(uuid, None)
        self.stopped.pop(uuid, None)


class DrivenContext(SteppedContext):
    """Runs what was started when a test says so. Sleeps pass at once. ``answers``: those to `Confirm`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self._routines = deque[Coroutine[Any, Any, Any]]()
        self.answers = deque[bool | None]()
        self.asked: list[float] = []

    def start(self, name: str, routine: Any, requests: object = None) -> None:
        self._routines.append(routine)

    def run(self) -> None:
        while self._routines:
            self._perform(self._routines.popleft())

    def _perform(self, work: Any) -> Any:
        if isinstance(work, Wait):
            return self._answer(work)
        answer, error = None, None
        while True:
            try:
                wait = work.send(answer) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            answer, error = None, None
            try:
                answer = self._answer(wait)
            except Exception as raised:
                error = raised

    def _answer(self, wait: Wait) -> Any:
        match wait.name.split("."):
            case ["driver", method]:
                return self._machine.call(method, *wait.arguments)
            case ["sleep"]:
                self.now += wait.arguments[0]
                return None
            case ["within"]:
                return self._perform(wait.arguments[1])
            case ["cell", "ask"]:
                self.asked.append(self.now)
                return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        raise AssertionError(wait.name)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def context(machine: Machine) -> DrivenContext:
    return DrivenContext(machine)


@pytest.fixture
def work(context: DrivenContext) -> AgentWorkload:
    return workload(context)


def workload(context: DrivenContext) -> AgentWorkload:
    def confirmation(uuid: str, attempt: int) -> Confirm:
        return Confirm(SESSION, uuid, attempt, waits=True)

    return AgentWorkload(context, "a", "topic", confirmation, start_seconds=20.0, retry_seconds=1.0)


def do(work: AgentWorkload, context: DrivenContext, order: Order, counter: int) -> None:
    """Take an order from the answer to a poll, and carry it out."""
    work.take(order, context.now, counter)
    context.run()


def store(work: AgentWorkload, counter: int) -> None:
    """Let a poll bring all results, and be answered."""
    powered = tuple(work.unstored.powered.values())
    work.unstored.acknowledged(Poll(session=SESSION, counter=counter, powered=powered))


def results(work: AgentWorkload) -> list[PowerResult]:
    return [*work.unstored.powered.values()]


def test_a_guest_is_stopped_once_and_the_result_stays_until_it_is_stored(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    work.take(STOP, 0.0, 1)
    assert (work.known("stop"), work.known("start"), work.busy) == ((("i", 1),), (), {"i"})
    assert not work.under_construction
    work.take(STOP, 0.0, 2)
    context.run()
    do(work, context, STOP, 3)
    assert (machine.running, machine.stopped, machine.calls) == ({}, {"i": 1}, ["stop"])
    assert results(work) == [PowerResult("i", 1, runs=False)]
    assert context.woken == ["topic"]
    store(work, 4)
    assert (results(work), work.known("stop")) == ([], ())
    # The answer to a poll that was sent before brings it once more.
    do(work, context, STOP, 3)
    assert machine.calls == ["stop"]
    # A newer poll may.
    do(work, context, STOP, 4)
    assert results(work) == [PowerResult("i", 1, runs=False)]


def test_a_stopped_guest_is_started_again_and_no_late_answer_stops_it(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    do(work, context, STOP, 5)
    do(work, context, START, 6)
    assert (machine.running, machine.stopped) == ({"i": 1}, {})
    assert results(work) == [PowerResult("i", 1, runs=True)]
    do(work, context, STOP, 5)
    store(work, 8)
    do(work, context, STOP, 7)
    assert machine.calls == ["stop", "start_again"]
    do(work, context, STOP, 8)
    do(work, context, START, 7)
    assert (machine.running, machine.stopped) == ({}, {"i": 1})
    work.unstored.forget(8)
    do(work, context, START, 9)
    assert machine.running == {"i": 1}


def test_a_result_that_was_reversed_meanwhile_is_not_taken_for_the_last(
    context: DrivenContext, work: AgentWorkload
) -> None:
    do(work, context, STOP, 1)
    told = Poll(session=SESSION, counter=2, powered=tuple(results(work)))
    do(work, context, START, 1)
    work.unstored.acknowledged(told)
    assert results(work) == [PowerResult("i", 1, runs=True)]


def test_an_order_that_is_reversed_while_it_is_carried_out_has_no_result(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    known = []
    told = []

    def reverse() -> None:
        work.take(START, 0.0, 2)
        known.append((work.known("stop"), work.known("start")))
        machine.during = lambda: told.extend(results(work))

    machine.during = reverse
    do(work, context, STOP, 1)
    # The cell could not order it once more if it counted as known.
    assert known == [((), (("i", 1),))]
    assert told == []
    assert machine.running == {"i": 1}
    assert results(work) == [PowerResult("i", 1, runs=True)]
    machine.during = lambda: (work.take(START, 0.0, 4), work.take(STOP, 0.0, 5))[0]
    store(work, 3)
    do(work, context, STOP, 3)
    assert (machine.running, results(work)) == ({}, [PowerResult("i", 1, runs=False)])


def test_a_start_of_a_guest_that_runs_changes_nothing(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    do(work, context, START, 1)
    assert (machine.calls, results(work)) == ([], [PowerResult("i", 1, runs=True)])


def test_destruction_outranks_a_stop_that_fails_again_and_again(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.failures.append(RuntimeError("busy"))
    machine.during = lambda: work.take(Destroy("i", 1), 0.0, 2)
    do(work, context, STOP, 1)
    assert (machine.calls, context.now) == (["stop", "destroy"], 0.0)
    assert (results(work), work.unstored.destroyed) == ([], {("i", 1): Destroyed("i", 1, 1)})


def test_stop_after_an_order_to_destroy_is_outranked(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    work.take(Destroy("i", 1), 0.0, 1)
    work.take(STOP, 0.0, 2)
    assert work.known("stop") == (("i", 1),)
    context.run()
    assert (machine.calls, results(work), work.known("stop")) == (["destroy"], [], ())


def test_a_guest_that_is_not_to_start_is_prepared_and_left_stopped(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    wanted = msgspec.structs.replace(instance("j", attempt=2), starts=False)
    machine.prepare = lambda each, beside=None: machine.stopped.update({each.uuid: each.attempt})  # type: ignore[method-assign]
    context.answers.append(True)
    do(work, context, Build(wanted, 60.0), 1)
    assert (machine.calls, machine.running, machine.stopped) == (["prepare", "stop"], {"i": 1}, {"j": 2})
    assert work.unstored.builds == {("j", 2): BuildResult("j", "a", 2)}


def test_a_guest_that_is_being_built_is_not_stopped(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.running.clear()
    context.answers.append(True)
    work.take(Build(instance(), 60.0), 0.0, 1)
    work.take(STOP, 0.0, 2)
    assert results(work) == [PowerResult("i", 1, runs=False, failure="the guest is still being built")]
    context.run()
    assert (machine.running, work.unstored.builds) == ({"i": 1}, {("i", 1): BuildResult("i", "a", 1)})


def test_a_guest_that_may_be_arriving_is_not_destroyed_for_a_start(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    """Its source was given up, so that its instance counts as lost here, and the user starts that."""
    machine.running.clear()
    context.answers.append(True)
    work.take(ReceiveGuest(instance(), 60.0, True), 0.0, 1)
    work.take(START, 0.0, 2)
    assert results(work) == [PowerResult("i", 1, runs=True, failure="the guest is still being built")]
    context.run()
    assert (machine.calls, machine.running) == (["receive"], {"i": 1})
    assert work.unstored.builds == {("i", 1): BuildResult("i", "a", 1)}


@pytest.mark.parametrize(
    ("running", "error", "failure"),
    [
        ({"i": 1}, CannotStopGuests("the driver X cannot stop guests"), "the driver X cannot stop guests"),
        ({}, None, "there is no guest i"),
        ({"i": 2}, None, "the guest of attempt 2 runs, and not that of attempt 1"),
    ],
    ids=["driver without it", "no guest", "another attempt"],
)
def test_what_cannot_be_stopped_fails_at_once(
    machine: Machine, context: DrivenContext, work: AgentWorkload, running, error, failure
) -> None:
    machine.running = running
    machine.failures += [error] if error else []
    do(work, context, STOP, 1)
    assert (results(work), context.now) == ([PowerResult("i", 1, runs=False, failure=failure)], 0.0)
    do(work, context, StartGuest(instance("j")), 2)
    assert work.unstored.powered["j", 1] == PowerResult("j", 1, runs=True, failure="there is no guest j")


@pytest.mark.parametrize("order", [STOP, START], ids=["stop", "start"])
def test_a_failed_call_is_repeated_for_the_time_of_a_start(
    machine: Machine, context: DrivenContext, work: AgentWorkload, order: StopGuest | StartGuest
) -> None:
    if order is START:
        machine.stop("i")
    machine.failures += [RuntimeError("busy")] * 2
    do(work, context, order, 1)
    assert results(work) == [PowerResult("i", 1, runs=order is START)]
    assert context.now == 3.0
    store(work, 2)
    do(work, context, START if order is STOP else STOP, 2)
    machine.failures += [RuntimeError("busy")] * 9
    do(work, context, order, 3)
    assert results(work) == [PowerResult("i", 1, runs=order is START, failure="busy")]
    assert 3.0 + 10.0 < context.now < 3.0 + 20.0


def test_a_call_that_hangs_fails_in_the_end(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.failures.append(TimeoutError())
    do(work, context, STOP, 1)
    assert [each.failure for each in results(work)] == ["the driver took longer than 20 seconds"]


def test_an_agent_that_was_restarted_answers_a_repeated_order(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    do(work, context, STOP, 7)
    restarted = workload(context)
    do(restarted, context, STOP, 1)
    assert (machine.stopped, results(restarted)) == ({"i": 1}, [PowerResult("i", 1, runs=False)])
    do(restarted, context, START, 2)
    again = workload(context)
    do(again, context, START, 1)
    assert (machine.running, results(again)) == ({"i": 1}, [PowerResult("i", 1, runs=True)])


def test_a_prepared_guest_starts_when_the_cell_says_so(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.running.clear()
    context.answers += [None] * 5 + [True]
    do(work, context, Build(instance(), 60.0), 1)
    # The pauses do not grow: a guest is stopped on another host meanwhile.
    assert context.asked == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (machine.running, machine.calls) == ({"i": 1}, ["prepare", "start"])


def test_a_build_that_waits_beyond_its_deadline_fails(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.running.clear()
    context.answers.append(None)
    do(work, context, Build(instance(), 10.0), 1)
    result = work.unstored.builds["i", 1]
    assert (result.code, result.failure) == (OVERTIME, "the build took longer than 10 seconds")
    assert (machine.calls, context.now) == (["prepare", "destroy"], 9.0)


def test_a_build_that_waits_and_is_wanted_no_more_is_removed(
    machine: Machine, context: DrivenContext, work: AgentWorkload
) -> None:
    machine.running.clear()
    context.answers += [None, False]
    do(work, context, Build(instance(), 10.0), 1)
    assert (machine.calls, work.unstored.builds) == (["prepare", "destroy"], {})
