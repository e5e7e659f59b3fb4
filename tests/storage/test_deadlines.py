"""Futures that are watched fail after their time, unless they are done."""

import asyncio

import pytest

from roost.storage import Deadlines


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
