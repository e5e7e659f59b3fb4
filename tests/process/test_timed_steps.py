"""Steps of coroutines that hold the event loop: each is reported once, and nothing else changes."""

import asyncio
from collections.abc import Awaitable

import pytest

from roost.process.timed_steps import TimedSteps, timed


class Clock:
    """Seconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Noted:
    """The holds that were reported."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.holds: list[tuple[str, float]] = []

    def note(self, operation: str, seconds: float) -> None:
        self.seconds += seconds
        self.holds.append((operation, round(seconds, 6)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_step_that_takes_longer_than_20_ms_is_reported_with_its_operation(clock: Clock) -> None:
    noted = Noted()

    async def work() -> str:
        clock.now += 0.020
        await asyncio.sleep(0)
        clock.now += 0.021
        await asyncio.sleep(0)
        clock.now += 3.0
        return "done"

    async def run() -> str:
        return await TimedSteps(work(), lambda: "GET /usages", noted, clock)

    assert asyncio.run(run()) == "done"
    assert noted.holds == [("GET /usages", 0.021), ("GET /usages", 3.0)]


def test_time_that_a_coroutine_waits_is_no_hold(clock: Clock) -> None:
    noted = Noted()

    async def work(other: Awaitable[None]) -> None:
        await other

    async def run() -> None:
        async def later() -> None:
            clock.now += 100.0

        await TimedSteps(work(asyncio.create_task(later())), lambda: "GET /", noted, clock)

    asyncio.run(run())
    assert noted.holds == []


def test_a_hold_within_a_timed_step_is_reported_by_the_inner_one_alone(clock: Clock) -> None:
    noted = Noted()

    async def inner() -> None:
        clock.now += 1.0

    async def outer() -> None:
        clock.now += 0.5
        await TimedSteps(inner(), lambda: "inner", noted, clock)

    async def run() -> None:
        await TimedSteps(outer(), lambda: "outer", noted, clock)

    asyncio.run(run())
    assert noted.holds == [("inner", 1.0), ("outer", 0.5)]


def test_errors_go_in_and_out_as_without_it(clock: Clock) -> None:
    noted = Noted()
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            clock.now += 1.0
            raise ValueError("at the end") from None

    async def run() -> None:
        task = asyncio.create_task(timed(work(), lambda: "work", noted))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(ValueError, match="at the end"):
            await task

    asyncio.run(run())
    assert seen == ["cancelled"]


def test_a_coroutine_is_closed_with_what_times_it(clock: Clock) -> None:
    closed: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            closed.append(True)

    awaited = TimedSteps(work(), lambda: "work", Noted(), clock).__await__()

    async def run() -> None:
        next(awaited)
        awaited.close()

    asyncio.run(run())
    assert closed == [True]
