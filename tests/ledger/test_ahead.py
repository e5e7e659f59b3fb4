"""What is looked up for the next batch while one is appended is used only where it is certain."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import sqlalchemy as sa

from roost.ledger import Command, Ledger
from roost.ledger import ledger as module
from roost.placement.commands.allocations import DeleteAllocations
from roost.placement.commands.names import AddResourceClass, RenameResourceClass
from roost.placement.errors import ConcurrentUpdate, NotFound, PlacementError
from roost.storage import Database
from support.databases import Place
from support.ledgers import claim, findings_in, holdings_of, host, loaded, opened, run, whole


class Slow:
    """A database whose next write begins only when it is told to, and whether that has been reached."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self._write = database.write
        monkeypatch.setattr(database, "write", self.write)

    async def write(self, work: Callable[[sa.Connection], object]) -> object:
        self.reached.set()
        await self.go.wait()
        return await self._write(work)


@asynccontextmanager
async def appending(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, first: Command[None], *behind: Command[None]
) -> AsyncIterator[list[asyncio.Future[None]]]:
    """``first`` is being appended and has looked up what ``behind`` names; at the end all are answered."""
    looks: list[object] = []
    read = ledger.database.read

    async def seen(work: Callable[[sa.Connection], object]) -> object:
        found = await read(work)
        looks.append(found)
        return found

    monkeypatch.setattr(ledger.database, "read", seen)
    slow = Slow(ledger.database, monkeypatch)
    # Each batch has time for one command.
    monkeypatch.setattr(module, "BATCH_SECONDS", -1.0)
    tasks = [asyncio.ensure_future(ledger.execute(command)) for command in (first, *behind)]
    await slow.reached.wait()
    while len(looks) < 2:
        await asyncio.sleep(0.001)
    yield tasks
    slow.go.set()
    await asyncio.gather(*tasks, return_exceptions=True)


def outcomes(tasks: list[asyncio.Future[None]]) -> list[type[BaseException] | None]:
    return [None if task.exception() is None else type(task.exception()) for task in tasks]


def test_a_consumer_of_the_batch_before_is_looked_up_again(place: Place, monkeypatch) -> None:
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            commands = [claim("a", "p", VCPU=4), claim("a", "p", VCPU=4), DeleteAllocations("a")]
            async with appending(ledger, monkeypatch, *commands, DeleteAllocations("a")) as tasks:
                pass
            assert outcomes(tasks) == [None, ConcurrentUpdate, None, NotFound]
            assert holdings_of(ledger.database) == {}
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_what_others_commit_meanwhile_is_seen(place: Place, monkeypatch) -> None:
    async def use() -> None:
        async with opened(place, 2) as [ledger, other]:
            await run(ledger, *host("p", VCPU=10))
            await run(ledger, claim("b", "p", VCPU=1))
            async with appending(
                ledger, monkeypatch, claim("a", "p", VCPU=4), DeleteAllocations("b"), claim("c", "p", VCPU=5)
            ) as tasks:
                await other.execute(DeleteAllocations("b"))
                await other.execute(claim("c", "p", VCPU=6))
            assert outcomes(tasks) == [None, NotFound, ConcurrentUpdate]
            assert holdings_of(ledger.database) == {"a": {"p": {"VCPU": 4}}, "c": {"p": {"VCPU": 6}}}
            assert whole(await ledger.current()) == whole(await other.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_class_that_is_renamed_meanwhile_goes_by_its_new_name(place: Place, monkeypatch) -> None:
    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, AddResourceClass("CUSTOM_OLD"), *host("p", CUSTOM_OLD=10))
            await run(ledger, claim("a", "p", CUSTOM_OLD=1))
            rename = RenameResourceClass("CUSTOM_OLD", "CUSTOM_NEW", ("a",))
            async with appending(ledger, monkeypatch, rename, DeleteAllocations("a")) as tasks:
                pass
            assert outcomes(tasks) == [None, None]
            assert holdings_of(ledger.database) == {}
            assert whole(await ledger.current()) == loaded(ledger.database)

    asyncio.run(use())
    assert findings_in(place) == []


def test_many_writers_on_few_consumers_end_as_the_tables_say(place: Place) -> None:
    async def use() -> None:
        async with opened(place, 2) as ledgers:
            await run(ledgers[0], *host("p", VCPU=1000))

            async def work(number: int) -> None:
                ledger = ledgers[number % 2]
                for turn in range(10):
                    with contextlib.suppress(PlacementError):
                        await ledger.execute(claim(f"c{(number + turn) % 5}", "p", VCPU=1 + turn % 3))
                    with contextlib.suppress(PlacementError):
                        await ledger.execute(DeleteAllocations(f"c{(number * 3 + turn) % 5}"))

            await asyncio.gather(*(work(number) for number in range(24)))
            fleets = [whole(await ledger.current()) for ledger in ledgers]
            assert fleets[0] == fleets[1] == loaded(ledgers[0].database)

    asyncio.run(use())
    assert findings_in(place) == []
