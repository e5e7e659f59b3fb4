"""Turns of work in forked processes: one at a time, so many that wait, and a turn that is given back."""

import asyncio

import pytest

from roost.placement.queries.forked import ForkedError
from roost.placement.queries.forked_turns import ForkedTurns


def turns_of(most: int) -> ForkedTurns:
    return ForkedTurns(most, 60.0, 2**26, 1.0)


def fail() -> bytes:
    raise ValueError("wrong")


def test_one_piece_is_done_at_a_time_and_a_further_one_is_refused() -> None:
    async def run() -> None:
        turns, order, free = turns_of(2), list[str](), asyncio.Event()

        async def piece(name: str) -> None:
            async with turns.turn():
                order.append(f"{name} begins")
                await free.wait()
                order.append(f"{name} ends")

        async with asyncio.TaskGroup() as group:
            group.create_task(piece("first"))
            await asyncio.sleep(0)
            assert not turns.full
            group.create_task(piece("second"))
            await asyncio.sleep(0.05)
            assert turns.full
            assert order == ["first begins"]
            free.set()
        assert order == ["first begins", "first ends", "second begins", "second ends"]
        assert not turns.full

    asyncio.run(run())


def test_a_piece_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    async def run() -> None:
        turns = turns_of(1)
        with pytest.raises(ForkedError):
            async with turns.turn():
                await turns.run(fail)

        async def hold() -> None:
            async with turns.turn():
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await asyncio.sleep(0.01)
        assert turns.full
        task.cancel()
        await asyncio.wait([task])
        assert not turns.full
        async with turns.turn():
            assert await turns.run(lambda: b"done") == b"done"

    asyncio.run(run())
