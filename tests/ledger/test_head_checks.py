"""Claims by new consumers skip the head check, and get the same answers as with it."""

import asyncio

import pytest

from roost.ledger import writer as module
from roost.ledger.commit_states import CommitLimits
from roost.ledger.state import Moment
from roost.ledger.tables import waiting_writers
from roost.placement.commands.allocations import DeleteAllocations, FreeConsumers
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import CannotAllocate, ConcurrentUpdate
from support.ledgers import claim, counted_head_checks, findings_in, holdings_of, host, opened, run

ONE = {"p": {"VCPU": 1}}
SKIPPING = CommitLimits(skip=1e6, no_skip=0.0)
"""One head check is enough for ever."""


def test_only_the_first_claim_needs_a_head_check(place):
    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            seen = counted_head_checks(ledger)
            await run(ledger, *(claim(name, "p", VCPU=1) for name in "abc"))
            assert len(seen) == 0
            await ledger.execute(DeleteAllocations("a"))
            assert len(seen) == 1
            await run(ledger, claim("a", "p", VCPU=1), claim("d", "p", VCPU=1))
            assert len(seen) == 1
            assert holdings_of(ledger.database) == dict.fromkeys("abcd", ONE)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_consumer_that_is_there_is_refused_as_after_a_head_check(place):
    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=3), claim("a", "p", VCPU=1))
            seen = counted_head_checks(ledger)
            commands = [claim("b", "p", VCPU=1), claim("a", "p", VCPU=1), claim("a", "p", VCPU=1000)]
            outcomes = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            assert len(seen) == 2
            assert isinstance(outcomes[0], Moment)
            # That it holds something goes before that there is no room, as upstream.
            assert [type(outcome) for outcome in outcomes[1:]] == [ConcurrentUpdate] * 2
            assert holdings_of(ledger.database) == {"a": ONE, "b": ONE}

    asyncio.run(use())
    assert findings_in(place) == []


def test_one_that_is_there_and_fits_is_found_out_by_the_database(place):
    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=3), claim("a", "p", VCPU=1))
            seen = counted_head_checks(ledger)
            with pytest.raises(ConcurrentUpdate, match="expected 1 but got null"):
                await ledger.execute(claim("a", "p", VCPU=1))
            assert len(seen) == 1
            assert (await ledger.current()).inventory_columns("VCPU").used_by(
                (await ledger.current()).row("p")
            ) == 1

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_refusal_is_judged_at_the_head(place):
    async def use() -> None:
        async with opened(place, 2, SKIPPING) as [ours, others]:
            await run(ours, *host("p", VCPU=1), claim("a", "p", VCPU=1))
            seen = counted_head_checks(ours)
            await others.execute(FreeConsumers(("a",)))
            await ours.execute(claim("b", "p", VCPU=1))
            assert len(seen) == 2
            assert holdings_of(ours.database) == {"b": ONE}

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_refusal_is_checked_for_once_and_judged_once(place, monkeypatch):
    drafts = 0

    def counted(*arguments):  # type: ignore[no-untyped-def]
        nonlocal drafts
        drafts += 1
        return draft(*arguments)

    draft = module.draft

    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=2), claim("a", "p", VCPU=1))
            monkeypatch.setattr(module, "draft", counted)
            seen = counted_head_checks(ledger)
            commands = [claim("b", "p", VCPU=2), claim("c", "p", VCPU=1)]
            outcomes = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [CannotAllocate, Moment]
            assert (len(seen), drafts) == (1, 1)
            assert holdings_of(ledger.database) == {"a": ONE, "c": ONE}

    asyncio.run(use())
    assert findings_in(place) == []


def test_what_is_only_drafted_is_shown_to_nobody(place, monkeypatch):
    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=2), claim("a", "p", VCPU=1))
            check, shown = ledger.database.autocommit_read, []

            async def read_meanwhile(work):  # type: ignore[no-untyped-def]
                monkeypatch.setattr(ledger.database, "autocommit_read", check)
                fleet = await ledger.current()
                shown.append(fleet.inventory_columns("VCPU").used_by(fleet.row("p")))
                return await check(work)

            monkeypatch.setattr(ledger.database, "autocommit_read", read_meanwhile)
            commands = [claim("b", "p", VCPU=2), claim("c", "p", VCPU=1)]
            await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
            fleet = await ledger.current()
            assert shown == [1]
            assert fleet.inventory_columns("VCPU").used_by(fleet.row("p")) == 2

    asyncio.run(use())
    assert findings_in(place) == []


def test_another_writer_shows_at_the_append(place):
    async def use() -> None:
        async with opened(place, 2, SKIPPING) as [ours, others]:
            await run(ours, *host("p", VCPU=2), claim("a", "p", VCPU=1))
            seen = counted_head_checks(ours)
            await others.execute(claim("b", "p", VCPU=1))
            with pytest.raises(CannotAllocate):
                await ours.execute(claim("c", "p", VCPU=1))
            await ours.execute(FreeConsumers(("b",)))
            await others.execute(claim("d", "p", VCPU=1))
            with pytest.raises(ConcurrentUpdate):
                await ours.execute(claim("d", "p", VCPU=1))
            assert len(seen) >= 3
            assert holdings_of(ours.database) == {"a": ONE, "d": ONE}

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_number_that_was_taken_and_trimmed_away_is_not_free(place):
    async def use() -> None:
        async with opened(place, 2, SKIPPING) as [ours, others]:
            await run(ours, *host("p", VCPU=3))
            await run(others, SetTraits("p", frozenset({"HW_CPU_X86_AVX"})))
            await run(others, SetTraits("p", frozenset()), claim("a", "p", VCPU=3))
            await others.execute(FreeConsumers(("a",)))
            await others.execute(claim("b", "p", VCPU=3))
            assert await others.trim(1, 0.0)
            with pytest.raises(CannotAllocate):
                await ours.execute(claim("c", "p", VCPU=3))
            assert holdings_of(ours.database) == {"b": {"p": {"VCPU": 3}}}

    asyncio.run(use())
    assert findings_in(place) == []


def test_nothing_is_claimed_without_a_head_check_that_writes_no_consumer(place):
    async def use() -> None:
        async with opened(place, 1, SKIPPING) as [ledger]:
            await run(ledger, *host("p", VCPU=2), claim("a", "p", VCPU=1))
            seen = counted_head_checks(ledger)
            # Nothing is asked for: of a consumer that is there it is refused, of another it is done.
            with pytest.raises(ConcurrentUpdate):
                await ledger.execute(claim("a", "p"))
            await ledger.execute(claim("b", "p"))
            assert len(seen) == 3

    asyncio.run(use())


def test_whoever_asks_is_seen_in_time(place):
    async def use() -> None:
        async with opened(place, 1, CommitLimits(skip=0.05, no_skip=0.0)) as [ledger]:
            await run(ledger, *host("p", VCPU=1000))
            ledger.database.write_now(
                lambda connection: connection.execute(
                    waiting_writers.insert().values(writer="somebody", asked_at=0.0)
                )
            )
            asked = asyncio.get_running_loop().time()
            number = 0
            waited = 0.0
            while waited < 0.5:
                before = asyncio.get_running_loop().time()
                assert before - asked < 30, "nobody lets it go first"
                number += 1
                await ledger.execute(claim(f"c{number}", "p", VCPU=1))
                waited = asyncio.get_running_loop().time() - before
            assert before - asked < 5

    asyncio.run(use())
