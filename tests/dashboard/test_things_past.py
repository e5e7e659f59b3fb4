"""Hosts and consumers as of a commit: by the index they are what the fleet and the tables were then."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.dashboard.past.index_view import IndexView
from roost.dashboard.past.things_past import HostAsOf, consumer_at, host_at
from roost.fleet import Fleet
from support.past_histories import CONSUMERS, PROVIDERS, KnownHistory, histories, made, view_of


def told(fleet: Fleet, root: str) -> list[Any]:
    """All that a fleet tells of a tree."""
    return sorted(
        (
            fleet.uuid(row),
            fleet.facts(row),
            sorted(fleet.inventories(row).items()),
            sorted(fleet.usages(row).items()),
            fleet.traits_of(row),
            fleet.aggregates_of(row),
        )
        for row in fleet.subtree(fleet.row(root))
    )


def tells(host: HostAsOf) -> list[Any]:
    return sorted(
        (
            each.uuid,
            (each.name, each.parent, each.generation),
            sorted(each.inventories.items()),
            sorted(each.used.items()),
            each.traits,
            each.aggregates,
        )
        for each in host.providers
    )


@settings(max_examples=25)
@given(steps=histories, size=st.sampled_from((1, 4, 1000)))
def test_hosts_and_consumers_are_what_they_were(steps: Sequence[Any], size: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "roost.db", steps, size))


async def _compare(file: Path, steps: Sequence[Any], size: int) -> None:
    async with made(file, steps) as history:
        view = view_of(history.ledger.database, size)
        past = await history.fleets()
        versions = sorted(history.holdings, reverse=True)
        for version in versions[:: max(1, len(versions) // 8)]:
            await _compare_at(history, view, version, await past.at(version))


async def _compare_at(history: KnownHistory, view: IndexView, version: int, fleet: Fleet) -> None:
    read, holdings = history.ledger.database.read, history.holdings[version]
    for uuid in PROVIDERS:
        host = await read(lambda connection: host_at(connection, view, uuid, version))  # noqa: B023
        if uuid not in fleet:
            assert host is None
            continue
        assert host is not None
        assert tells(host) == [
            (uuid, tuple(_plain(facts)), *rest) for uuid, facts, *rest in told(fleet, uuid)
        ]
        here = {each.uuid for each in host.providers}
        held = {name: each for name, each in holdings.items() if here & each.allocations.keys()}
        assert {each.consumer.uuid: each.allocations for each in host.holders} == {
            name: each.allocations for name, each in held.items()
        }
        assert [each.consumer for each in host.holders] == [held[name].consumer for name in sorted(held)]
        made_again = told(host.fleet(), uuid)
        assert [each[2:] for each in made_again] == [each[2:] for each in told(fleet, uuid)]
    for uuid in CONSUMERS:
        found = await read(lambda connection: consumer_at(connection, view, uuid, version))  # noqa: B023
        expected = holdings.get(uuid)
        if expected is None:
            assert found.holder is None
            continue
        assert found.holder is not None
        assert (found.holder.consumer, found.holder.allocations) == (expected.consumer, expected.allocations)
        for provider, place in found.places.items():
            root = fleet.root.item(fleet.row(provider))
            assert (place.root, place.root_name) == (fleet.uuid(root), fleet.name(root))


def _plain(facts: Any) -> tuple[Any, ...]:
    return facts.name, facts.parent, facts.generation
