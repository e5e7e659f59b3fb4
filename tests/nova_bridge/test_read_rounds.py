"""Rounds of reads: one that hangs is left running, and an error is told."""

import asyncio

import pytest

from roost.nova.read_rounds import ReadRounds


def test_read_that_hangs_is_made_once_and_holds_up_no_other() -> None:
    async def run() -> None:
        rounds = ReadRounds(0.01)
        answers = asyncio.Event()
        begun: list[str] = []

        async def hangs() -> None:
            begun.append("hangs")
            await answers.wait()

        async def quick() -> None:
            begun.append("quick")

        for _ in range(3):
            await rounds.make({"hangs": hangs, "quick": quick})
        assert sorted(begun) == ["hangs", "quick", "quick", "quick"]
        answers.set()
        await rounds.make({"hangs": hangs, "quick": quick})
        await rounds.make({"hangs": hangs})
        assert begun.count("hangs") == 2
        await rounds.cancel()

    asyncio.run(run())


def test_round_does_not_wait_for_a_read_that_an_earlier_one_has_left_running() -> None:
    async def run() -> None:
        rounds = ReadRounds(3600.0)
        begun = asyncio.Event()
        made: list[str] = []

        async def hangs() -> None:
            begun.set()
            await asyncio.Event().wait()

        async def quick() -> None:
            made.append("quick")

        first = asyncio.create_task(rounds.make({"hangs": hangs}))
        await begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        async with asyncio.timeout(30.0):
            for _ in range(3):
                await rounds.make({"hangs": hangs, "quick": quick})
                await rounds.make({"hangs": hangs})
        assert made == ["quick"] * 3
        await rounds.cancel()

    asyncio.run(run())


def test_error_of_a_read_that_was_left_running_is_raised_later() -> None:
    async def run() -> None:
        rounds = ReadRounds(0.01)
        answers = asyncio.Event()

        async def fails() -> None:
            await answers.wait()
            raise ZeroDivisionError

        async def quick() -> None: ...

        await rounds.make({"fails": fails})
        answers.set()
        with pytest.raises(ZeroDivisionError):
            await rounds.make({"fails": fails, "quick": quick})

    asyncio.run(run())


def test_error_of_a_read_is_raised_and_the_read_is_made_again() -> None:
    async def run() -> None:
        rounds = ReadRounds(60.0)

        async def fails() -> None:
            raise ZeroDivisionError

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await rounds.make({"fails": fails})

    asyncio.run(run())


def test_cancelled_read_has_ended() -> None:
    async def run() -> None:
        rounds = ReadRounds(0.01)
        ended: list[str] = []

        async def hangs() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("hangs")

        await rounds.make({"hangs": hangs})
        await rounds.cancel("hangs", "unknown")
        assert ended == ["hangs"]

    asyncio.run(run())
