"""The ledger: group commit, refusals, other writers, reads at the head."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from roost.ledger import Command, Ledger, State
from roost.ledger.state import Moment
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddResourceClass
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.errors import CannotAllocate, NotFound
from roost.storage import DatabaseUnavailable
from support.ledgers import (
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
from support.waiting import patience


def test_commands_that_wait_together_share_a_commit(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=1000))
            before = len(commits_of(ledger.database))
            claims = [claim(f"c{number}", "p", VCPU=1) for number in range(400)]
            await asyncio.gather(*map(ledger.execute, claims))
            assert len(holdings_of(ledger.database)) == 400
            assert len(commits_of(ledger.database)) - before <= 5

    asyncio.run(use())
    assert findings_in(place) == []


class _EndsAnIterator(Command[None], frozen=True):
    """A command with a defect: it reads on behind the end of an iterator."""

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> None:
        next(iter(()))


def test_a_command_that_ends_an_iterator_fails_alone(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            commands = [_EndsAnIterator(), CreateProvider("p", "name of p")]
            failed, created = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            assert isinstance(failed, RuntimeError)
            assert isinstance(failed.__cause__, StopIteration)
            assert not isinstance(created, Exception)
            assert "p" in whole(await ledger.current())["providers"]

    asyncio.run(use())


def test_a_close_that_is_cancelled_leaves_commands_their_outcomes(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            first = asyncio.create_task(ledger.execute(claim("a", "p", VCPU=1)))
            await asyncio.sleep(0)
            closing = asyncio.create_task(ledger.close())
            await asyncio.sleep(0)
            closing.cancel()
            async with asyncio.timeout(patience(30)):
                await first
                await ledger.execute(claim("b", "p", VCPU=1))
            assert set(holdings_of(ledger.database)) == {"a", "b"}

    asyncio.run(use())


def test_a_refused_command_changes_nothing_and_leaves_the_others_alone(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            commands = [
                claim("a", "p", VCPU=6),
                claim("b", "p", VCPU=6),
                SetTraits("p", frozenset({"CUSTOM_NEW", "no custom trait"}), add_custom=True),
                claim("c", "p", VCPU=4),
                CreateProvider("other", "name of p"),
                claim("d", "p", VCPU=1),
            ]
            answers = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            assert isinstance(answers[1], CannotAllocate)
            claimed = [isinstance(answer, Moment) for answer in answers]
            assert claimed == [True, False, False, True, False, False]
            assert holdings_of(ledger.database) == {"a": {"p": {"VCPU": 6}}, "c": {"p": {"VCPU": 4}}}
            fleet = await ledger.current()
            assert "CUSTOM_NEW" not in fleet.traits
            assert "other" not in fleet
            assert whole(fleet) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_nobody_reads_what_is_not_durable(place, monkeypatch):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            before, write = whole(await ledger.current()), ledger.database.write
            appending, go_on = asyncio.Event(), asyncio.Event()

            async def late(work: Callable[[Any], Any]) -> object:
                appending.set()
                await go_on.wait()
                return await write(work)

            monkeypatch.setattr(ledger.database, "write", late)
            for read in (True, False):
                appending.clear()
                go_on.clear()
                commands = (claim(f"c{read}", "p", VCPU=1), CreateProvider(f"q{read}", f"q{read}"))
                writing = asyncio.gather(*map(ledger.execute, commands))
                await appending.wait()
                if read:
                    assert whole(await ledger.current()) == before
                    assert whole(await ledger.current()) == before
                go_on.set()
                await writing
                assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_what_could_not_be_written_is_not_shown(place, monkeypatch):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            before = whole(await ledger.current())

            async def fail(work: Callable[[Any], Any]) -> object:
                raise DatabaseUnavailable("gone")

            with monkeypatch.context() as patched:
                patched.setattr(ledger.database, "write", fail)
                with pytest.raises(DatabaseUnavailable):
                    await ledger.execute(claim("c", "p", VCPU=1))
            assert whole(await ledger.current()) == before
            await ledger.execute(claim("c", "p", VCPU=10))
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())


def test_what_cannot_be_encoded_is_not_shown_either(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            before = whole(await ledger.current())
            odd = claim("c", "p", VCPU=1).writes[0]
            with pytest.raises(UnicodeEncodeError):
                await ledger.execute(WriteAllocations((msgspec.structs.replace(odd, project_id="\ud800"),)))
            assert whole(await ledger.current()) == before
            await ledger.execute(claim("c", "p", VCPU=1))
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_batch_of_refusals_makes_no_commit(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            before = commits_of(ledger.database)
            commands = [claim(f"c{number}", "nowhere", VCPU=1) for number in range(3)]
            answers = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            assert all(isinstance(answer, Exception) for answer in answers)
            assert commits_of(ledger.database) == before

    asyncio.run(use())


def test_names_swapped_in_a_circle_commit_though_together_they_break_a_unique_rule(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, CreateProvider("p", "a"), CreateProvider("q", "b"))
            swap = [UpdateProvider("p", "c"), UpdateProvider("q", "a"), UpdateProvider("p", "b")]
            await asyncio.gather(*map(ledger.execute, swap))
            fleet = await ledger.current()
            assert (fleet.row_named("a"), fleet.row_named("b")) == (fleet.row("q"), fleet.row("p"))
            assert whole(fleet) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_what_is_taken_and_given_back_in_one_batch_stays(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            both, groups = frozenset({"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}), frozenset({"agg-1", "agg-2"})
            await run(ledger, CreateProvider("p", "n"), SetTraits("p", both), SetAggregates("p", groups))
            commands = [
                SetTraits("p", frozenset()),
                SetAggregates("p", frozenset()),
                SetTraits("p", both),
                SetAggregates("p", groups),
            ]
            before = len(commits_of(ledger.database))
            await asyncio.gather(*map(ledger.execute, commands))
            assert len(commits_of(ledger.database)) == before + 1
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_row_freed_and_taken_in_one_batch_is_the_new_providers(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(
                ledger, *host("old", VCPU=4, DISK_GB=5), SetTraits("old", frozenset({"HW_CPU_X86_AVX"}))
            )
            row = (await ledger.current()).row("old")
            commands = [DeleteProvider("old"), *host("new", VCPU=8), claim("c", "new", VCPU=8)]
            await asyncio.gather(*map(ledger.execute, commands))
            assert (await ledger.current()).row("new") == row
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_write_without_a_generation_still_moves_the_time_of_change(place):
    async def use() -> None:
        async with opened(place, 2) as [ledger, tail]:
            await ledger.execute(CreateProvider("p", "n"))
            await asyncio.sleep(0.01)
            await ledger.execute(SetAggregates("p", frozenset({"agg"}), raises=False))
            assert whole(await ledger.current()) == whole(await tail.current()) == loaded(ledger.database)

    asyncio.run(use())


def test_trim_removes_only_a_beginning_though_clocks_differ(place):
    async def use() -> None:
        async with opened(place) as [first_writer]:
            # The first one is of a draft without changes: the standard names are there.
            times = iter([0.0, 10.0, 20.0, 5.0, 30.0, 40.0])
            ledger = await Ledger.open(first_writer.database, lambda: next(times))
            for number in range(5):
                await ledger.execute(AddResourceClass(f"CUSTOM_{number}"))
            first = commits_of(ledger.database)[-5]
            await ledger.trim(5, 0.0)
            assert await ledger.trim(100, 15.0) == 1
            assert commits_of(ledger.database) == [first + 1, first + 2, first + 3, first + 4]
            assert await ledger.trim(100, 1e12) == 3
            assert await ledger.trim(100, 1e12) == 0
            assert commits_of(ledger.database) == [first + 4]

    asyncio.run(use())
    assert findings_in(place) == []


def test_an_unknown_thing_is_refused_with_its_own_error_and_an_outage_with_the_database(place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            with pytest.raises(NotFound):
                await ledger.execute(SetInventories("nowhere", {}))
            await ledger.database.close()
            for question in (ledger.current(), ledger.execute(CreateProvider("p", "n"))):
                with pytest.raises(DatabaseUnavailable):
                    await question

    asyncio.run(use())
