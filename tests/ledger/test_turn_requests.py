"""A writer that loses several races requests its turn, and gets it."""

import asyncio
from collections.abc import Callable
from itertools import count

import sqlalchemy as sa

from roost.ledger import Ledger
from roost.ledger.commit_states import CommitLimits
from roost.ledger.tables import waiting_writers
from roost.ledger.turn_requests import turn_requests
from roost.storage import Database
from support.ledgers import claim, findings_in, holdings_of, host, opened, run

TRIES = 20
"""Attempts of one batch. A writer that only tries again loses all of them, one with a turn request few."""


def asking(database: Database) -> list[str]:
    return list(database.read_now(turn_requests))


def test_a_writer_that_is_far_from_the_database_has_its_turn(place, monkeypatch):
    async def use() -> None:
        async with opened(place, 3, CommitLimits(attempts=TRIES)) as [far, *near]:
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


def test_the_request_of_a_writer_that_died_is_removed(place):
    async def use() -> None:
        async with opened(place, 1, CommitLimits(turn=0.3, skip=0.0)) as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            dead = sa.insert(waiting_writers).values(writer="dead", asked_at=0.0)
            ledger.database.write_now(lambda connection: connection.execute(dead))
            await ledger.execute(claim("a", "p", VCPU=1))
            assert asking(ledger.database) == []

    asyncio.run(use())
