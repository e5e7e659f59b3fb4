"""The database goes away: what was acknowledged stays, what is unknown is found out, nothing is repeated."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest
import sqlalchemy as sa

from roost.ledger import Ledger
from roost.ledger.commit_states import CommitLimits
from roost.ledger.state import Moment
from roost.ledger.tables import commits
from roost.placement.commands.allocations import DeleteAllocations
from roost.placement.commands.names import AddResourceClass
from roost.placement.errors import CannotAllocate
from roost.storage import Database, DatabaseUnavailable, OutcomeUnknown
from support.cutting import AFTER, BEFORE, HELD, LATE, wire
from support.databases import SERVERS, Place
from support.ledgers import claim, commits_of, findings_in, holdings_of, host, loaded, opened, run, whole

on_servers = pytest.mark.parametrize("place", SERVERS, indirect=True)


@on_servers
@pytest.mark.parametrize("when", [BEFORE, AFTER, LATE])
def test_an_append_that_is_cut_off_in_its_commit_is_done_once_and_answered(place, when):
    async def use() -> None:
        with wire(place.url) as line:
            async with opened(Place(place.kind, (line.url, place.at(1))), 2) as [ledger, other]:
                await run(ledger, *host("p", VCPU=10))
                before = len(commits_of(other.database))
                line.cut_next(when)
                # A claim of a new consumer, done twice, would be refused the second time.
                commands = [claim("a", "p", VCPU=4), claim("b", "p", VCPU=4), claim("c", "p", VCPU=4)]
                answers = await asyncio.gather(*map(ledger.execute, commands), return_exceptions=True)
                assert line.cuts == 1
                assert [type(answer) for answer in answers] == [Moment, Moment, CannotAllocate]
                assert len(commits_of(other.database)) == before + 1
                assert holdings_of(other.database).keys() == {"a", "b"}
                await ledger.execute(claim("d", "p", VCPU=2))
                assert whole(await ledger.current()) == whole(await other.current()) == loaded(other.database)

    asyncio.run(use())
    assert findings_in(place) == []


@on_servers
def test_an_append_whose_commit_hangs_is_of_unknown_outcome_and_done_once(place):
    async def use() -> None:
        with wire(place.url) as line:
            async with opened(place) as [other]:
                await run(other, *host("p", VCPU=10))
                database = Database(line.url, answer_seconds=3)
                ledger = await Ledger.open(database)
                line.cut_next(HELD)
                with pytest.raises(OutcomeUnknown, match="no answer for 3 s"):
                    await ledger.execute(claim("a", "p", VCPU=4))
                assert line.cuts == 1
                line.release()
                # What became of it is found out without its caller, and each claim is there once.
                while "a" not in holdings_of(other.database):
                    await asyncio.sleep(0.05)
                while True:
                    try:
                        shown = whole(await ledger.current())
                        break
                    except DatabaseUnavailable:
                        continue
                assert shown == whole(await other.current()) == loaded(other.database)
                assert holdings_of(other.database).keys() == {"a"}
                await ledger.close()
                await database.close()

    asyncio.run(use())
    assert findings_in(place) == []


@on_servers
def test_who_is_cut_off_while_others_write_loses_and_repeats_nothing(place):
    async def use() -> None:
        with wire(place.url) as line:
            async with opened(Place(place.kind, (line.url, place.at(1), place.at(2))), 3) as ledgers:
                await run(ledgers[0], *host("p", VCPU=2**30))

                expected: set[str] = set()
                cuts = (BEFORE, AFTER, LATE, AFTER, BEFORE)

                async def work(number: int) -> None:
                    ledger = ledgers[number % 3]
                    for turn in count():
                        if line.cuts == len(cuts):
                            return
                        await ledger.execute(claim(f"c{number}-{turn}", "p", VCPU=1))
                        if turn % 3:
                            expected.add(f"c{number}-{turn}")
                        else:
                            await ledger.execute(DeleteAllocations(f"c{number}-{turn}"))

                async def cut() -> None:
                    for number, when in enumerate(cuts):
                        line.cut_next(when)
                        while line.cuts == number:
                            await asyncio.sleep(0.02)

                await asyncio.gather(cut(), *(work(number) for number in range(9)))
                assert holdings_of(ledgers[1].database).keys() == expected
                fleets = [whole(await ledger.current()) for ledger in ledgers]
                assert fleets[0] == fleets[1] == fleets[2] == loaded(ledgers[1].database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_an_outcome_that_stays_unknown_for_too_long_is_said_and_found_out_later(place, monkeypatch):
    async def use() -> None:
        async with opened(place, 1, CommitLimits(recovery=0.3)) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            database = ledger.database
            write, read = database.write, database.read
            away: list[bool] = []

            async def vanish(work: Callable[[sa.Connection], object]) -> object:
                await write(work)
                away.append(True)
                raise OutcomeUnknown("the connection went away")

            async def unreachable(work: Callable[[sa.Connection], object], **how: bool) -> object:
                if away:
                    raise DatabaseUnavailable("away")
                return await read(work, **how)

            monkeypatch.setattr(database, "write", vanish)
            monkeypatch.setattr(database, "read", unreachable)
            monkeypatch.setattr(database, "load", unreachable)
            with pytest.raises(OutcomeUnknown):
                await ledger.execute(claim("a", "p", VCPU=4))
            with pytest.raises(DatabaseUnavailable):
                await ledger.current()
            away.clear()
            monkeypatch.setattr(database, "write", write)
            await ledger.execute(claim("b", "p", VCPU=4))
            assert holdings_of(database).keys() == {"a", "b"}
            assert whole(await ledger.current()) == loaded(database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_database_that_went_back_in_time_is_followed_there(place):
    """As when a standby takes over that had not heard of the newest commits yet."""

    async def use() -> None:
        async with opened(place, 2) as [ledger, other]:
            before = whole(await ledger.current())
            await ledger.execute(AddResourceClass("CUSTOM_LOST"))
            assert whole(await other.current()) == whole(await ledger.current())

            def forget(connection: sa.Connection) -> None:
                connection.execute(sa.delete(commits).where(commits.c.seq > before["version"]))
                connection.execute(sa.text("DELETE FROM resource_classes WHERE name = 'CUSTOM_LOST'"))

            ledger.database.write_now(forget)
            assert whole(await ledger.current()) == before
            # The other one hears of it only when there are other commits under the numbers it knows.
            await ledger.execute(AddResourceClass("CUSTOM_OTHER"))
            await other.execute(AddResourceClass("CUSTOM_THIRD"))
            assert whole(await ledger.current()) == whole(await other.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []
