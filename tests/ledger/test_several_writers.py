"""Several writers on one database: none oversubscribes, and each sees what the others were told is done."""

import asyncio

import pytest

from roost.ledger import LedgerBusy
from roost.ledger.commit_states import CommitLimits
from roost.ledger.state import Moment
from roost.placement.commands.names import AddResourceClass
from roost.placement.commands.providers import CreateProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import CannotAllocate, DuplicateName
from support.ledgers import (
    before_each_append,
    claim,
    commits_of,
    findings_in,
    holdings_of,
    host,
    loaded,
    opened,
    run,
    whole,
)


def test_two_writers_at_once_oversubscribe_nothing_and_lose_nothing(place):
    async def use() -> None:
        async with opened(place, 2) as ledgers:
            await run(ledgers[0], *host("p", VCPU=100))
            commands = [
                ledgers[number % 2].execute(claim(f"c{number}", "p", VCPU=1)) for number in range(200)
            ]
            answers = await asyncio.gather(*commands, return_exceptions=True)
            assert sum(isinstance(answer, Moment) for answer in answers) == 100
            assert {type(answer) for answer in answers if not isinstance(answer, Moment)} == {CannotAllocate}
            placed = {f"c{number}" for number, answer in enumerate(answers) if isinstance(answer, Moment)}
            assert holdings_of(ledgers[0].database).keys() == placed
            fleets = [whole(await ledger.current()) for ledger in ledgers]
            assert fleets[0] == fleets[1] == loaded(ledgers[0].database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_who_is_outrun_is_judged_again_on_the_new_state(place):
    async def use() -> None:
        async with opened(place, 2) as [slow, fast]:
            await run(slow, *host("p", VCPU=10))
            before_each_append(slow, lambda: fast.execute(claim("fast", "p", VCPU=5)), 1)
            answers = await asyncio.gather(
                slow.execute(claim("small", "p", VCPU=5)),
                slow.execute(claim("late", "p", VCPU=5)),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [Moment, CannotAllocate]
            assert holdings_of(slow.database).keys() == {"fast", "small"}
            assert whole(await slow.current()) == whole(await fast.current())

    asyncio.run(use())


def test_who_is_always_outrun_gives_up_with_nothing_written(place):
    async def use() -> None:
        async with opened(place, 2, CommitLimits(attempts=5, conflicts=100)) as [slow, fast]:
            numbers = iter(range(100))
            act = lambda: fast.execute(AddResourceClass(f"CUSTOM_{next(numbers)}"))  # noqa: E731
            before_each_append(slow, act, 5)
            with pytest.raises(LedgerBusy, match="5 times in a row"):
                await slow.execute(CreateProvider("p", "n"))
            assert "p" not in await slow.current()
            await slow.execute(CreateProvider("p", "n"))
            assert whole(await slow.current()) == whole(await fast.current())

    asyncio.run(use())


def test_a_read_sees_what_another_writer_was_told_is_done(place):
    async def use() -> None:
        async with opened(place, 2) as [writer, reader]:
            for number in range(20):
                await writer.execute(CreateProvider(f"p{number}", f"n{number}"))
                fleets = await asyncio.gather(*(reader.current() for _ in range(3)))
                assert all(f"p{number}" in fleet for fleet in fleets)

    asyncio.run(use())


def test_a_command_is_judged_on_what_another_writer_was_told_is_done(place):
    async def use() -> None:
        async with opened(place, 2) as [one, other]:
            await run(one, *host("p", VCPU=1))
            await other.execute(SetTraits("p", frozenset({"HW_CPU_X86_AVX"})))
            await one.execute(claim("c", "p", VCPU=1))
            with pytest.raises(CannotAllocate):
                await other.execute(claim("d", "p", VCPU=1))
            await one.execute(UpdateProvider("p", "renamed"))
            await other.execute(CreateProvider("q", "name of p"))
            with pytest.raises(DuplicateName):
                await one.execute(CreateProvider("r", "name of p"))

    asyncio.run(use())


def test_a_replica_whose_commits_were_trimmed_away_reloads(place):
    async def use() -> None:
        async with opened(place, 2) as [writer, idle]:
            await run(writer, *host("p", VCPU=9), *host("q", "p", DISK_GB=5), claim("c", "q", DISK_GB=5))
            assert await writer.trim(1, 0.0) > 0
            assert len(commits_of(writer.database)) == 1
            assert whole(await idle.current()) == whole(await writer.current())
            await idle.execute(claim("d", "p", VCPU=9))
            assert whole(await writer.current()) == loaded(writer.database)

    asyncio.run(use())
    assert findings_in(place) == []
