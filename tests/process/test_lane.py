"""A lane makes calls one after another, and a call that hangs holds up neither callers nor later calls."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from roost.process.lane import CallTimedOut, Lane
from support.waiting import patience


def hang_until(released: threading.Event, calls: list[str], name: str) -> Callable[[], None]:
    def call() -> None:
        calls.append(name)
        released.wait()

    return call


def test_calls_are_made_in_their_order_in_one_thread_and_errors_go_to_their_callers() -> None:
    async def use() -> None:
        lane, made = Lane("test"), []

        def call(number: int) -> tuple[int, int]:
            made.append(number)
            if number == 3:
                raise LookupError("three")
            return number, threading.get_ident()

        answers = await asyncio.gather(
            *(lane.run(lambda n=number: call(n)) for number in range(6)), return_exceptions=True
        )
        assert made == list(range(6))
        assert isinstance(answers[3], LookupError)
        threads = {answer[1] for answer in answers if isinstance(answer, tuple)}
        assert len(threads) == 1 and threading.get_ident() not in threads
        await lane.close(None)

    asyncio.run(use())


def test_a_call_that_hangs_is_given_up_and_later_calls_are_made() -> None:
    async def use() -> None:
        lane, released, calls = Lane("test"), threading.Event(), []
        hanging = asyncio.create_task(lane.run(hang_until(released, calls, "hangs"), 0.05))
        await asyncio.sleep(0)
        behind = asyncio.create_task(lane.run(lambda: calls.append("behind"), 3600))
        with pytest.raises(CallTimedOut) as unanswered:
            await hanging
        assert unanswered.value.begun
        await behind
        assert calls == ["hangs", "behind"]
        released.set()
        await lane.run(lambda: calls.append("later"))
        assert calls[-1] == "later"
        await lane.close(None)

    asyncio.run(use())


def test_a_call_that_is_given_up_before_it_is_made_is_never_made() -> None:
    async def use() -> None:
        lane, released, calls = Lane("test"), threading.Event(), []
        hanging = asyncio.create_task(lane.run(hang_until(released, calls, "hangs")))
        await asyncio.sleep(0)
        with pytest.raises(CallTimedOut) as unanswered:
            await lane.run(lambda: calls.append("never"), 0.05)
        assert not unanswered.value.begun
        released.set()
        await hanging
        await lane.run(lambda: None)
        assert calls == ["hangs"]
        await lane.close(None)

    asyncio.run(use())


def test_a_call_that_is_given_up_while_its_thread_takes_it_is_never_made() -> None:
    given_up, reached = threading.Event(), threading.Event()

    class LateFuture(asyncio.Future[None]):
        """A future whose state another thread learns, and acts on only after the call is given up."""

        def done(self) -> bool:
            found = super().done()
            if threading.current_thread() is not threading.main_thread():
                reached.set()
                given_up.wait()
            return found

    async def use() -> None:
        lane, calls = Lane("test"), list[str]()
        loop = asyncio.get_running_loop()
        create_future = loop.create_future
        loop.create_future = lambda: LateFuture(loop=loop)  # type: ignore[method-assign]
        with pytest.raises(CallTimedOut) as timed_out:
            await lane.run(lambda: calls.append("never"), 0.2)
        loop.create_future = create_future  # type: ignore[method-assign]
        assert reached.is_set()
        given_up.set()
        await lane.run(lambda: calls.append("later"))
        assert not timed_out.value.begun
        assert calls == ["later"]
        await lane.close(None)

    asyncio.run(use())


def test_what_waits_can_be_given_up_at_once_and_a_hanging_thread_is_left_at_the_end() -> None:
    async def use() -> None:
        lane, released, calls = Lane("test"), threading.Event(), []
        hanging = asyncio.create_task(lane.run(hang_until(released, calls, "hangs"), 3600))
        await asyncio.sleep(0)
        lane.give_up_after(0.05)
        with pytest.raises(CallTimedOut):
            await hanging
        another = asyncio.create_task(lane.run(hang_until(released, calls, "too")))
        await asyncio.sleep(0)
        await lane.close(0.05)
        assert not another.done()
        another.cancel()
        released.set()

    asyncio.run(use())


def test_a_call_that_ends_an_iterator_has_an_answer() -> None:
    async def use() -> None:
        lane = Lane("test")
        async with asyncio.timeout(patience(30)):
            with pytest.raises(RuntimeError) as failed:
                await lane.run(lambda: next(iter(())))
        assert isinstance(failed.value.__cause__, StopIteration)
        assert await lane.run(lambda: 1) == 1
        await lane.close(None)

    asyncio.run(use())
