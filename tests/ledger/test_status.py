"""The status of a ledger: how far its replica is behind the head, and what waits."""

import asyncio
from pathlib import Path

from roost.ledger import Ledger
from roost.placement.commands.names import AddResourceClass
from roost.storage import Database
from support.databases import Place
from support.ledgers import opened, run


def test_lag_is_counted_from_the_replica_and_ends_with_a_read(place: Place) -> None:
    async def test() -> None:
        async with opened(place, 2) as (ours, other):
            assert ours.status().looked_seconds is None
            at_head = await ours.look()
            assert (at_head.lag_commits, at_head.lag_seconds, at_head.trimmed_away) == (0, 0.0, False)
            assert at_head.version == at_head.head
            await run(other, *(AddResourceClass(f"CUSTOM_{number}") for number in range(3)))
            assert ours.status().lag_commits == 0
            behind = await ours.look()
            assert (behind.lag_commits, behind.head) == (3, at_head.head + 3)
            assert behind.looked_seconds is not None
            await ours.current()
            caught_up = ours.status()
            assert (caught_up.version, caught_up.lag_commits, caught_up.lag_seconds) == (behind.head, 0, 0.0)

    asyncio.run(test())


def test_lag_in_seconds_is_the_age_of_the_first_commit_that_lacks(tmp_path: Path) -> None:
    async def test() -> None:
        times = {"writer": 1_000.0, "reader": 1_000.0}
        databases = [Database(f"sqlite:///{tmp_path}/roost.db") for _ in times]
        writer = await Ledger.open(databases[0], lambda: times["writer"])
        reader = await Ledger.open(databases[1], lambda: times["reader"])
        for at in (2_000.0, 3_000.0):
            times["writer"] = at
            await writer.execute(AddResourceClass(f"CUSTOM_{at:.0f}"))
        times["reader"] = 3_005.0
        assert (await reader.look()).lag_seconds == 1_005.0
        times["reader"] = 3_015.0
        status = reader.status()
        assert (status.lag_seconds, status.looked_seconds) == (1_015.0, 10.0)
        # The clock of another machine may be ahead.
        times["reader"] = 1_500.0
        assert (await reader.look()).lag_seconds == 0.0
        for ledger in (writer, reader):
            await ledger.close()
        for database in databases:
            await database.close()

    asyncio.run(test())


def test_a_replica_whose_commit_is_trimmed_is_told_from_one_that_is_behind(place: Place) -> None:
    async def test() -> None:
        async with opened(place, 2) as (ours, other):
            await run(other, *(AddResourceClass(f"CUSTOM_{number}") for number in range(3)))
            assert not (await ours.look()).trimmed_away
            await other.trim(keep=1, older_than=0.0)
            trimmed = await ours.look()
            assert trimmed.trimmed_away
            assert (trimmed.oldest, trimmed.lag_commits) == (trimmed.head, 3)
            await ours.current()
            assert not ours.status().trimmed_away
            assert not (await other.look()).trimmed_away

    asyncio.run(test())


def test_commands_that_wait_are_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "roost.db") as (ledger,):
            waiting = [
                asyncio.create_task(ledger.execute(AddResourceClass(f"CUSTOM_{number}")))
                for number in range(7)
            ]
            await asyncio.sleep(0)
            assert ledger.status().waiting_commands == 7
            await asyncio.gather(*waiting)
            assert ledger.status().waiting_commands == 0

    asyncio.run(test())
