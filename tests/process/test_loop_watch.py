"""The watch of the event loop: what it counts, what it logs, and that it shows that the loop turns."""

import asyncio
import inspect
import time
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from roost.process.loop_watch import BEAT_SECONDS, SILENT_SECONDS, UNKNOWN, LoopWatch, running_watch, watching
from roost.process.metrics.catalogue import CATALOGUE, LOOP_HOLDS
from roost.process.metrics.instruments import start_counting, stop_counting


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    structlog.reset_defaults()
    LOOP_HOLDS.series.clear()
    start_counting(CATALOGUE)
    yield
    stop_counting()
    LOOP_HOLDS.series.clear()


class Clock:
    """Seconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def holds() -> dict[str, int]:
    """The number of holds by operation."""
    counts = {operation: sum(series.counts) for (operation,), series in LOOP_HOLDS.series.items()}
    return {operation: number for operation, number in counts.items() if number}


def test_all_holds_are_counted_and_of_the_long_ones_one_a_minute_is_logged_for_each_operation() -> None:
    clock = Clock()
    watch = LoopWatch(clock=clock)
    watch.begin()
    with capture_logs() as lines:
        for _ in range(5):
            watch.note("GET /usages", 0.5)
            watch.note("GET /traits", 0.05)
            watch.note("PUT /traits/{name}", 0.3)
        clock.now += SILENT_SECONDS
        watch.note("GET /usages", 0.7)
    assert holds() == {"GET /usages": 6, "GET /traits": 5, "PUT /traits/{name}": 5}
    assert [(line["operation"], line["milliseconds"]) for line in lines] == [
        ("GET /usages", 500),
        ("PUT /traits/{name}", 300),
        ("GET /usages", 700),
    ]
    assert lines[2]["more_since_the_last_line"] == 4


def test_what_opens_a_process_counts_nothing() -> None:
    clock = Clock()
    watch = LoopWatch(clock=clock)
    with capture_logs() as lines:
        watch.note("open", 3.0)
        watch.turned()
        clock.now += 30.0
        watch.begin()
        watch.turned()
    assert (holds(), lines) == ({}, [])


def test_a_hold_that_no_step_has_reported_is_found_by_the_beat() -> None:
    clock, beats = Clock(), []
    watch = LoopWatch(lambda: beats.append(clock.now), clock)
    watch.begin()
    watch.turned()
    clock.now += BEAT_SECONDS
    watch.turned()
    clock.now += BEAT_SECONDS + 2.0
    watch.note("GET /usages", 2.0)
    watch.turned()
    assert holds() == {"GET /usages": 1}
    clock.now += BEAT_SECONDS + 1.0
    watch.turned()
    assert holds() == {"GET /usages": 1, UNKNOWN: 1}
    assert len(beats) == 4


def test_the_steps_of_tasks_are_watched_by_the_name_of_their_function() -> None:
    async def holding() -> None:
        await asyncio.sleep(0)
        time.sleep(0.05)

    async def run() -> None:
        with watching() as watch:
            assert running_watch() is watch
            watch.begin()
            task = asyncio.create_task(holding(), name="host-0001")
            await task
            assert task.get_name() == "host-0001"
        assert running_watch() is None

    asyncio.run(run())
    assert [operation.rpartition(".")[2] for operation in holds()] == ["holding"]


def test_a_loop_that_turns_beats() -> None:
    beats: list[bool] = []

    async def run() -> None:
        beaten = asyncio.Event()

        def beat() -> None:
            beats.append(True)
            if len(beats) == 3:
                beaten.set()

        with watching(beat):
            await beaten.wait()

    asyncio.run(run())
    assert len(beats) == 3


def test_a_task_that_is_cancelled_before_its_first_step_leaves_no_coroutine_behind() -> None:
    async def never() -> None:
        raise AssertionError("it began")

    async def run() -> None:
        watch = LoopWatch()
        watch.start(asyncio.get_running_loop())
        try:
            begun = never()
            task = asyncio.get_running_loop().create_task(begun)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0)
            assert task.cancelled()
            assert inspect.getcoroutinestate(begun) == inspect.CORO_CLOSED
        finally:
            watch.stop(asyncio.get_running_loop())

    asyncio.run(run())
