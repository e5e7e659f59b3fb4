"""Histories of a ledger for tests of the past: trees, reshapes, deletions, and several writers whose clocks
differ."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from roost.dashboard.past.index_block import block_of
from roost.dashboard.past.index_entries import EntryCollector, joined
from roost.dashboard.past.index_view import IndexView
from roost.fleet import Fleet
from roost.ledger import SCHEMA, Command, Held, Ledger
from roost.ledger.feed import commits_after
from roost.ledger.holdings import held_by_all
from roost.ledger.past_fleet import PastFleet
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.storage import Database
from support.upgrading import upgrade_empty

PROVIDERS = tuple(f"p{number}" for number in range(6))
CONSUMERS = tuple(f"c{number}" for number in range(6))
SKEWS = (0.0, -7.0, 12.0)
"""Seconds by which the clocks of the writers are off."""

_providers = st.sampled_from(PROVIDERS)
_consumers = st.sampled_from(CONSUMERS)
_amounts = st.integers(1, 3)
_inventories = st.fixed_dictionaries(
    {"VCPU": st.integers(4, 9)}, optional={"MEMORY_MB": st.integers(4, 9)}
).map(
    lambda totals: {name: Inventory(total, total % 2, allocation_ratio=2.0) for name, total in totals.items()}
)


def _write(consumer: str, allocations: dict[str, dict[str, int]], project: str) -> ConsumerWrite:
    return ConsumerWrite(
        consumer=consumer,
        allocations=allocations,
        project_id=project,
        user_id="user",
        consumer_type="INSTANCE",
        generation=msgspec.UNSET,
    )


def _moved(consumer: str, of: str, to: str, amount: int) -> Reshape:
    """A reshape by which a provider's inventory and a consumer's claim go to another provider."""
    inventories = (NewInventories(of, {}), NewInventories(to, {"VCPU": Inventory(9)}))
    return Reshape(inventories, (_write(consumer, {to: {"VCPU": amount}}, "project"),))


_traits = st.sets(st.sampled_from(("CUSTOM_A", "CUSTOM_B"))).map(frozenset)
_aggregates = st.sets(st.sampled_from(("agg-a", "agg-b"))).map(frozenset)
_parents = st.none() | _providers
_resources = st.fixed_dictionaries({"VCPU": _amounts}, optional={"MEMORY_MB": _amounts})
_held = st.dictionaries(_providers, _resources, max_size=3)
_projects = st.sampled_from(("project", "other"))


def _created(uuid: str, parent: str | None, has: dict[str, Inventory]) -> Sequence[Command[Any]]:
    return [CreateProvider(uuid, f"name of {uuid}", parent), SetInventories(uuid, has)]


commands: st.SearchStrategy[Sequence[Command[Any]]] = st.one_of(
    st.builds(_created, _providers, _parents, _inventories),
    st.builds(lambda uuid, has: [SetInventories(uuid, has)], _providers, _inventories),
    st.builds(lambda *to: [UpdateProvider(*to)], _providers, st.sampled_from(("x", "y", "z")), _parents),
    st.builds(lambda uuid: [SetInventories(uuid, {}), DeleteProvider(uuid)], _providers),
    st.builds(lambda uuid, names: [SetTraits(uuid, names, None, add_custom=True)], _providers, _traits),
    st.builds(lambda uuid, names: [SetAggregates(uuid, names, None)], _providers, _aggregates),
    st.builds(lambda *write: [WriteAllocations((_write(*write),))], _consumers, _held, _projects),
    st.builds(lambda consumer: [DeleteAllocations(consumer)], _consumers),
    st.builds(lambda *moved: [_moved(*moved)], _consumers, _providers, _providers, _amounts),
)
"""Commands that may be refused."""

histories = st.lists(
    st.tuples(st.integers(0, len(SKEWS) - 1), st.booleans(), st.lists(commands, min_size=1, max_size=3)),
    min_size=10,
    max_size=40,
)
"""Steps of a history: the writer, whether its commands may share a commit, and the commands."""


class KnownHistory(NamedTuple):
    """A history that was made. ``holdings``: of all consumers, by version; ``stamps``: by commit."""

    ledger: Ledger
    holdings: dict[int, dict[str, Held]]

    async def fleets(self) -> "PastFleet":
        """Return the fleet to move through the history."""
        return await PastFleet.open(self.ledger.database)


@asynccontextmanager
async def made(file: Path, steps: Sequence[Any]) -> AsyncIterator[KnownHistory]:
    """Make a history in a SQLite file, of hosts p0 to p2 with a child each before its steps."""
    ticks = itertools.count(1_000.0, 3.0)
    async with AsyncExitStack() as stack:
        ledgers = []
        for skew in SKEWS:
            database = Database(f"sqlite:///{file}")
            stack.push_async_callback(database.close)
            upgrade_empty(SCHEMA, database)
            ledger = await Ledger.open(database, clock=lambda skew=skew: next(ticks) + skew)  # type: ignore[misc]
            stack.push_async_callback(ledger.close)
            ledgers.append(ledger)
        history = KnownHistory(ledgers[0], {})
        for number in range(3):
            below = PROVIDERS[number + 3]
            for uuid, parent in ((PROVIDERS[number], None), (below, PROVIDERS[number])):
                await ledgers[number].execute(CreateProvider(uuid, f"name of {uuid}", parent))
                await ledgers[number].execute(SetInventories(uuid, {"VCPU": Inventory(8)}))
        await _keep(history)
        for writer, together, several in steps:
            for some in _batches(several, together):
                await asyncio.gather(
                    *(ledgers[writer].execute(command) for command in some), return_exceptions=True
                )
                await _keep(history)
        yield history


def _batches(several: Sequence[Sequence[Command[Any]]], together: bool) -> Sequence[Sequence[Command[Any]]]:
    flat = [command for each in several for command in each]
    return [flat] if together else [[command] for command in flat]


async def _keep(history: KnownHistory) -> None:
    fleet: Fleet = await history.ledger.current()
    if fleet.version not in history.holdings:
        history.holdings[fleet.version] = history.ledger.database.read_now(held_by_all)


def view_of(database: Database, size: int) -> IndexView:
    """An index of all commits of a database, in blocks of a size."""
    commits = database.read_now(lambda connection: commits_after(connection, 0, 10_000, 2**30)).commits
    blocks, collector = [], EntryCollector()
    for at in range(0, len(commits), size):
        parts = []
        for commit in commits[at : at + size]:
            collector.add(commit)
            if len(collector) == 3:
                parts.append(collector.take())
        blocks.append(block_of(joined([*parts, collector.take()])))
    return IndexView(blocks)
