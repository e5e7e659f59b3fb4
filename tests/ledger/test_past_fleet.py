"""A fleet moved through the history is at each version what the live fleet was."""

import asyncio
import random
from typing import Any

import pytest
import sqlalchemy as sa

from roost.ledger import past_fleet
from roost.ledger.past_fleet import HistoryMissing, PastFleet
from roost.ledger.tables import commits
from roost.placement.commands.allocations import DeleteAllocations
from roost.placement.commands.providers import DeleteProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.errors import PlacementError
from support.databases import Place
from support.fleets import snapshot
from support.ledgers import claim, host, opened, run


def test_each_version_is_made_again_backwards_and_forwards(place: Place, monkeypatch) -> None:
    monkeypatch.setattr(past_fleet, "COMMITS_AT_ONCE", 7)
    chosen = random.Random(5)

    async def work() -> None:
        async with opened(place) as [ledger]:
            kept: dict[int, dict[str, Any]] = {}
            for step in range(60):
                which = f"p{chosen.randrange(5)}"
                commands = chosen.choice(
                    [
                        host(which, VCPU=8, MEMORY_MB=64),
                        [claim(f"c{step}", which, VCPU=1)],
                        [claim(f"c{step}", which, VCPU=2, MEMORY_MB=8)],
                        [DeleteAllocations(f"c{chosen.randrange(step + 1)}")],
                        [SetTraits(which, frozenset({f"CUSTOM_{step % 3}"}), None, add_custom=True)],
                        [SetAggregates(which, frozenset({f"agg{step % 2}"}), None)],
                        [DeleteProvider(which)],
                    ]
                )
                try:
                    await run(ledger, *commands)
                except PlacementError:
                    continue
                fleet = await ledger.current()
                kept[fleet.version] = snapshot(fleet)
            seen: list[tuple[int, int]] = []
            past = await PastFleet.open(ledger.database, lambda done, total: seen.append((done, total)))
            newest = past.version
            versions = [*kept]
            shuffled = chosen.sample(versions, len(versions))
            for version in [*reversed(versions), *versions, *shuffled]:
                fleet = await past.at(version)
                assert fleet.version == version
                assert snapshot(fleet) == kept[version], version
            assert all(done <= total for done, total in seen)
            assert await past.next_changes(newest) is None
            assert await past.next_changes(versions[-2])

            await past.at(newest)
            trimmed = sa.delete(commits).where(commits.c.seq <= versions[5])
            await ledger.database.write(lambda connection: connection.execute(trimmed))
            assert snapshot(await past.at(versions[5])) == kept[versions[5]]
            with pytest.raises(HistoryMissing, match=f"commit {versions[5]} is not kept"):
                await past.at(versions[4])

    asyncio.run(work())
