"""A program waits for databases that are away at its start, and for nothing else."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from roost.conducting.waiting import do_when_there, open_when_there
from roost.model.errors import OperatorError
from roost.storage import DatabaseUnavailable


def test_opening_waits_until_the_database_answers_and_closes_what_it_had_opened() -> None:
    story: list[str] = []

    async def open_(stack: AsyncExitStack) -> str:
        story.append("open")
        stack.callback(story.append, "close")
        if len(story) < 5:
            # As records tell of their database.
            raise OperatorError("cannot keep records") from DatabaseUnavailable("away")
        return "opened"

    async def run() -> None:
        async with AsyncExitStack() as stack:
            assert await open_when_there(stack, open_, pause=0.0) == "opened"
            assert story == ["open", "close"] * 2 + ["open"]
        assert story == ["open", "close"] * 3

    asyncio.run(run())


def test_a_wrong_configuration_ends_the_start_at_once() -> None:
    async def open_(_: AsyncExitStack) -> None:
        raise OperatorError("no such option")

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await open_when_there(stack, open_)

    with pytest.raises(OperatorError, match="no such option"):
        asyncio.run(run())


def test_preparing_waits_until_the_database_answers() -> None:
    tries: list[int] = []

    def prepare() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise DatabaseUnavailable("away")
        if len(tries) == 4:
            raise OperatorError("tables of another revision")

    do_when_there(prepare, pause=0.0)
    assert len(tries) == 3
    with pytest.raises(OperatorError, match="another revision"):
        do_when_there(prepare)
