"""Writers that are outrun ask for a turn, and get it."""

import asyncio
import time
from collections.abc import Callable
from itertools import count

import sqlalchemy as sa

from roost.ledger import Ledger, turns
from roost.ledger import ledger as module
from roost.ledger.tables import waiting_writers
from roost.storage import Database
from support.ledgers import claim, findings_in, holdings_of, host, opened, run

TRIES = 20
"""Of a writer that only tries again, none of so many would be the first. Asking takes a handful."""


def asking(database: Database) -> list[str]:
    return list(database.read_now(turns.asking))


def test_a_writer_that_is_far_from_the_database_has_its_turn(place, monkeypatch):
    monkeypatch.setattr(module, "TRIES", TRIES)

    async def use() -> None:
        async with opened(place, 3) as [far, *near]:
            await run(far, *host("p", VCPU=2**30))
            write = far.database.write

            async def slowly(work: Callable[[sa.Connection], object]) -> object:
                await asyncio.sleep(0.05)
                return await write(work)

            monkeypatch.setattr(far.database, "write", slowly)
            expected = {f"far-{number}" for number in range(5)}
            over = asyncio.Event()

            async def hurry(ledger: Ledger, name: str) -> None:
                for number in count():
                    if over.is_set():
                        return
                    expected.add(f"{name}-{number}")
                    await ledger.execute(claim(f"{name}-{number}", "p", VCPU=1))

            async def plod() -> None:
                for number in range(5):
                    await far.execute(claim(f"far-{number}", "p", VCPU=1))
                over.set()

            await asyncio.gather(plod(), *(hurry(ledger, f"near{n}") for n, ledger in enumerate(near)))
            assert holdings_of(near[0].database).keys() == expected
            assert asking(near[0].database) == []

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_writer_that_asked_and_died_is_waited_for_once(place, monkeypatch):
    monkeypatch.setattr(turns, "LET_SECONDS", 0.3)
    monkeypatch.setattr(module, "SURE_SECONDS", 0.0)

    async def use() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            dead = sa.insert(waiting_writers).values(writer="dead", asked_at=0.0)
            ledger.database.write_now(lambda connection: connection.execute(dead))
            start = time.monotonic()
            await ledger.execute(claim("a", "p", VCPU=1))
            assert time.monotonic() - start >= 0.3
            assert asking(ledger.database) == []

    asyncio.run(use())


def test_writers_that_ask_go_in_the_order_in_which_they_asked():
    now = 0.0
    ours = turns.Turns(Database.__new__(Database), lambda: now)
    ours._name = "b"
    assert ours.others_first(["a", "b", "c"])
    assert not ours.others_first(["b", "c"])
    assert ours.others_first(["c"])  # someone took us for dead
    now = turns.LET_SECONDS
    assert not ours.others_first(["c", "b"])
    assert ours.leaving() == ["c", "b"]
