"""What has a deadline fails after its time, unless it is done."""

import asyncio

import pytest

from roost.process.deadlines import Deadlines


def test_each_future_fails_after_its_time_and_what_is_done_stays_done() -> None:
    async def use() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(0.05)
        done, cancelled, late, later = (loop.create_future() for _ in range(4))
        for future in (done, cancelled, late):
            deadlines.watch(future, lambda: TimeoutError("late"))
        done.set_result(1)
        cancelled.cancel()
        with pytest.raises(TimeoutError, match="late"):
            await late
        deadlines.watch(later, lambda: TimeoutError("later"))
        with pytest.raises(TimeoutError, match="later"):
            await later
        assert done.result() == 1 and cancelled.cancelled()

    asyncio.run(use())


def test_without_a_limit_and_after_its_end_nothing_fails() -> None:
    async def use() -> None:
        loop = asyncio.get_running_loop()
        unlimited, closed = Deadlines(None), Deadlines(0.01)
        futures = [loop.create_future() for _ in range(2)]
        for deadlines, future in zip((unlimited, closed), futures, strict=True):
            deadlines.watch(future, TimeoutError)
        closed.close()
        await asyncio.sleep(0.05)
        assert not any(future.done() for future in futures)

    asyncio.run(use())


def test_work_that_is_late_is_cancelled_and_its_task_goes_on() -> None:
    async def use() -> None:
        deadlines = Deadlines(0.05)
        assert await deadlines.within(asyncio.sleep(0, "in time"), TimeoutError) == "in time"
        with pytest.raises(TimeoutError, match="late"):
            await deadlines.within(asyncio.Event().wait(), lambda: TimeoutError("late"))
        await asyncio.sleep(0)  # the task itself is not cancelled
        with pytest.raises(ZeroDivisionError):
            await deadlines.within(fail(), TimeoutError)
        await asyncio.sleep(0.1)  # past the deadline of what has failed

    async def fail() -> None:
        raise ZeroDivisionError

    asyncio.run(use())


def test_a_task_that_is_cancelled_at_its_deadline_is_cancelled() -> None:
    async def use() -> None:
        deadlines = Deadlines(0.05)

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                task.cancel()

        task = asyncio.create_task(deadlines.within(work(), TimeoutError))
        with pytest.raises(asyncio.CancelledError):
            await task

        waiting = asyncio.create_task(Deadlines(60).within(asyncio.Event().wait(), TimeoutError))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(use())
