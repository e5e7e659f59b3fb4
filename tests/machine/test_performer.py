"""The asyncio shell performs the steps of machines."""

import asyncio
from typing import Any

import msgspec
import pytest

from roost.machine import (
    Ask,
    Await,
    Call,
    Clock,
    Draw,
    Increment,
    Machine,
    MachineStep,
    Monotonic,
    Performer,
    Read,
    Record,
    Sleep,
    Start,
    Together,
    UnknownService,
    Wake,
    Within,
    Write,
    lasting,
)
from roost.storage import DatabaseUnavailable


class Name(msgspec.Struct, frozen=True):
    """A work that needs no statement."""

    name: str

    def __call__(self, connection: object) -> str:
        return f"{connection} {self.name}"


class Double(Call[int], frozen=True):
    number: int


class Base:
    def __init__(self, name: str) -> None:
        self.name = name

    async def read(self, work: Any) -> Any:
        return work(f"read {self.name}")

    async def write(self, work: Any) -> Any:
        return work(f"wrote {self.name}")


class Sink:
    def __init__(self) -> None:
        self.put_in: list[Any] = []

    def put(self, runs: Any, attempts: Any) -> None:
        self.put_in.append((runs, attempts))


def find(name: str) -> Base:
    if name == "away":
        raise DatabaseUnavailable("away")
    return Base(name)


async def double(question: Call[Any]) -> int:
    assert isinstance(question, Double)
    if question.number < 0:
        raise ValueError("negative")
    await asyncio.sleep(0)
    return question.number * 2


def make(**values: Any) -> Performer:
    return Performer(find, {"double": double}, **values)


def perform(machine: Machine[Any], **values: Any) -> Any:
    return asyncio.run(make(**values).run(machine))


def test_each_step_has_its_answer():
    sink = Sink()
    counted = []

    class Counter:
        def inc(self, amount: float = 1.0) -> None:
            counted.append(amount)

    async def machine() -> list[Any]:
        await Record((), ())
        await Increment(Counter(), 2.0)
        return [
            await Read("api", Name("a")),
            await Write("cell/c", Name("b")),
            await Ask("double", Double(4)),
            await Monotonic(),
            await Clock(),
            await Draw(),
        ]

    answers = perform(machine(), records=sink, clock=lambda: 7.0, monotonic=lambda: 3.0, draw=lambda: "nonce")
    assert answers == ["read api a", "wrote cell/c b", 8, 3.0, 7.0, "nonce"]
    assert sink.put_in == [((), ())]
    assert counted == [2.0]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Read("away", Name("a")), DatabaseUnavailable),
        (Ask("double", Double(-1)), ValueError),
        (Ask("nobody", Double(1)), UnknownService),
        (MachineStep(), TypeError),
    ],
)
def test_the_error_of_a_step_is_thrown_in(step: Any, kind: type[Exception]):
    async def machine() -> str:
        try:
            await step
        except kind:
            return await Read("api", Name("on"))
        return "no error"

    assert perform(machine()) == "read api on"


def test_an_error_that_is_not_caught_leaves_the_machine():
    with pytest.raises(ValueError, match="negative"):
        perform(Ask("double", Double(-1)))


def test_machines_run_together_all_to_their_end():
    ended = []

    async def machine(number: int) -> int:
        doubled = await Ask("double", Double(number))
        await Sleep(0.0)
        ended.append(number)
        return doubled

    async def all_of(*numbers: int) -> list[int]:
        return await Together([machine(number) for number in numbers])

    assert perform(all_of(1, 2, 3)) == [2, 4, 6]
    ended.clear()
    with pytest.raises(ValueError, match="negative"):
        perform(all_of(-1, 2, 3))
    assert ended == [2, 3]


def test_a_machine_is_closed_after_its_time():
    closed = []

    async def slow() -> None:
        try:
            await Sleep(60.0)
        finally:
            closed.append(True)

    async def machine() -> str:
        try:
            await Within(0.0, slow())
        except TimeoutError:
            return "late"
        return "in time"

    assert perform(machine()) == "late"
    assert closed == [True]


def test_a_wake_between_a_look_and_the_wait_is_not_missed():
    async def scenario() -> list[bool]:
        performer = make()
        answers: list[bool] = []

        async def waiting() -> None:
            answers.append(await Await("work", 60.0))  # at once: it was never awaited
            performer.wakes.wake("work")
            answers.append(await Await("work", 60.0))  # at once: woken since
            answers.append(await Await("work", 0.0))  # nothing since
            await Start("waker", Wake("work"))
            answers.append(await Await("work", 60.0))

        performer.wakes.wake("work")
        await performer.run(waiting())
        return answers

    assert asyncio.run(scenario()) == [True, True, False, True]


def test_started_machines_end_with_the_performer_and_a_failure_is_kept():
    async def scenario() -> tuple[Any, ...]:
        performer = make()
        closed = []

        async def endless() -> None:
            try:
                while True:
                    await Await("never", 60.0)
            finally:
                closed.append(True)

        failing = performer.start("failing", Ask("double", Double(-1)))
        performer.start("endless", endless())
        await asyncio.wait([failing])
        await asyncio.sleep(0)
        running = performer.running
        await performer.close()
        return running, performer.running, closed, type(performer.failure)

    assert asyncio.run(scenario()) == (1, 0, [True], ValueError)


def test_a_machine_that_must_not_end_is_begun_again_after_an_error():
    begun: list[int] = []
    slept: list[float] = []

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            await Ask("double", Double(-1))

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(make(sleep=sleep).run(lasting("work", work, 5.0)))
    assert (begun, slept) == ([0, 1, 2], [5.0, 5.0])


def test_an_error_that_a_machine_returns_is_its_answer() -> None:
    async def gives() -> Exception:
        await Monotonic()
        return ValueError("an answer")

    async def machine() -> list[str]:
        answers = await Together([gives(), gives()])
        return [str(each) for each in answers]

    assert perform(machine()) == ["an answer", "an answer"]
