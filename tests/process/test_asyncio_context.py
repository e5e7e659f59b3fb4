"""The context of conductors and agents in a process."""

import asyncio
from typing import Any

import pytest

from roost.process.asyncio_context import AsyncioContext
from roost.process.context import lasting
from roost.storage import DatabaseUnavailable


def name(connection: str) -> str:
    """A work that needs no statement."""
    return f"{connection} it"


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


def make(**values: Any) -> AsyncioContext:
    return AsyncioContext(find, **values)


async def double(number: int) -> int:
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError("negative")
    return number * 2


def test_databases_are_found_by_their_names_and_records_reach_their_sink():
    async def run() -> None:
        sink = Sink()
        context = make(records=sink, clock=lambda: 7.0, monotonic=lambda: 3.0, draw=lambda: "nonce")
        assert await context.read("api", name) == "read api it"
        assert await context.write("cell/c", name) == "wrote cell/c it"
        with pytest.raises(DatabaseUnavailable):
            await context.read("away", name)
        assert (context.monotonic(), context.clock(), context.draw()) == (3.0, 7.0, "nonce")
        context.record((), ())
        assert sink.put_in == [((), ())]
        make().record((), ())

    asyncio.run(run())


def test_coroutines_run_together_all_to_their_end():
    ended = []

    async def routine(number: int) -> int:
        doubled = await double(number)
        ended.append(number)
        return doubled

    async def run() -> None:
        context = make()
        assert await context.together([routine(number) for number in (1, 2, 3)]) == [2, 4, 6]
        assert await context.together([]) == []
        ended.clear()
        with pytest.raises(ValueError, match="negative"):
            await context.together([routine(number) for number in (-1, 2, 3)])
        assert ended == [2, 3]

    asyncio.run(run())


def test_an_error_that_a_coroutine_returns_is_its_answer() -> None:
    async def gives() -> Exception:
        return ValueError("an answer")

    answers = asyncio.run(make().together([gives(), gives()]))
    assert [str(each) for each in answers] == ["an answer", "an answer"]


def test_what_runs_within_a_time_is_cancelled_after_it():
    closed = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60.0)
        finally:
            closed.append(True)

    async def run() -> None:
        context = make()
        assert await context.within(60.0, double(2)) == 4
        with pytest.raises(TimeoutError):
            await context.within(0.0, slow())
        assert closed == [True]

    asyncio.run(run())


def test_started_coroutines_end_with_the_context_and_a_failure_is_kept():
    async def run() -> None:
        context = make()
        closed = []

        async def endless() -> None:
            never = context.listen("never")
            try:
                while True:
                    await never.wait(60.0)
            finally:
                closed.append(True)

        failing = context.start("failing", double(-1))
        context.start("endless", endless())
        await asyncio.wait([failing])
        await asyncio.sleep(0)
        assert context.running == 1
        # One that has not begun is closed as well.
        context.start("late", endless())
        await context.close()
        assert (context.running, closed, type(context.failure)) == (0, [True], ValueError)

    asyncio.run(run())


def test_a_coroutine_that_must_not_end_is_begun_again_after_an_error():
    begun: list[int] = []
    slept: list[float] = []

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            await double(-1)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(lasting(make(sleep=sleep), "work", work, 5.0))
    assert (begun, slept) == ([0, 1, 2], [5.0, 5.0])
