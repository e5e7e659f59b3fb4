"""Placement gets the members of host aggregates, whatever is lost or repeated, and keeps all else."""

import asyncio
import random
from collections.abc import Collection, Iterable
from typing import Any

import pytest

from roost.conductor.aggregates.host_aggregates import KnownNodes
from roost.conductor.aggregates.mirror import AggregateMirror
from roost.conductor.aggregates.provider_aggregates import align, bring
from roost.conductor.backoff import Backoff
from roost.model.aggregate import Aggregate
from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.interface import Provider
from roost.placement.service import PlacementService
from roost.state.api_database.aggregates.known import AggregateDifference, differences
from roost.state.api_database.aggregates.store import AggregateChanges
from roost.storage import DatabaseUnavailable
from support.conducting import conducting
from support.waiting import patience

NODES = [f"node{number}" for number in range(5)]
DISK = "shared disk"
FOREIGN = "foreign"
OURS = ["one", "two", "three"]


class Aggregates:
    """The aggregates of a cloud, in memory."""

    def __init__(self) -> None:
        self.members: dict[str, frozenset[str]] = dict.fromkeys(OURS, frozenset())
        self.gone: frozenset[str] = frozenset()
        self.version = 1
        self.away = frozenset[str]()

    async def changes(self, after: int | None = None) -> AggregateChanges | None:
        if after == self.version:
            return None
        every = [Aggregate(uuid=uuid, name=uuid, members=nodes) for uuid, nodes in self.members.items()]
        return AggregateChanges(self.version, every, frozenset(self.members))

    async def deleted(self) -> frozenset[str]:
        return self.gone

    async def aggregates_of(self, node: str) -> frozenset[str]:
        return frozenset(uuid for uuid, members in self.members.items() if node in members)

    async def forget(self, deleted: Collection[str]) -> None:
        self.gone -= frozenset(deleted)

    async def nodes(self) -> KnownNodes:
        return KnownNodes(frozenset(NODES) - self.away, ("cell9",) if self.away else ())


class Placement:
    """Providers with generations. Requests are lost before or after they are carried out, and repeated; other
    writers come between."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.trouble = 0.0
        self.providers = {name: (1, frozenset[str]()) for name in (*NODES, DISK)}
        self.writes = 0

    def lose(self) -> None:
        if self.draw.random() < self.trouble:
            raise DatabaseUnavailable("no answer")

    def meddle(self) -> None:
        if self.draw.random() < self.trouble:
            name = self.draw.choice(sorted(self.providers))
            generation, there = self.providers[name]
            other = {self.draw.choice([FOREIGN, *OURS])}
            self.providers[name] = (
                generation + 1,
                there | other if self.draw.random() < 0.5 else there - other,
            )

    async def provider(self, uuid: str) -> Provider | None:
        self.lose()
        found = self.providers.get(uuid)
        return found and Provider(uuid, uuid, found[0], None, uuid)

    async def aggregates(self, provider: str) -> frozenset[str]:
        self.meddle()
        self.lose()
        if provider not in self.providers:
            raise NotFound(provider)
        return self.providers[provider][1]

    async def providers_in_aggregate(self, aggregate: str) -> frozenset[str]:
        self.lose()
        return frozenset(name for name, (_, there) in self.providers.items() if aggregate in there)

    async def set_aggregates(self, provider: str, new: Iterable[str], generation: int | None = None) -> int:
        self.meddle()
        self.lose()
        for repeated in (False, True):
            if repeated and self.draw.random() >= self.trouble:
                break
            at, _ = self.providers[provider]
            if at != generation and not repeated:
                raise ConcurrentUpdate(provider)
            if at == generation:
                self.providers[provider] = at + 1, frozenset(new)
                self.writes += 1
        self.lose()
        return at + 1


def mirror(aggregates: Any, placement: Any, **options: Any) -> AggregateMirror:
    return AggregateMirror(aggregates, placement, aggregates.nodes, asyncio.Event(), **options)


def heals(seed: int) -> None:
    """One schedule: changes, two mirrors, trouble; then one round without trouble."""
    draw = random.Random(seed)
    aggregates, placement = Aggregates(), Placement(draw)

    async def run() -> None:
        mirrors = [mirror(aggregates, placement), mirror(aggregates, placement)]
        placement.trouble = draw.choice((0.05, 0.2, 0.4))
        for _ in range(12):
            for uuid in list(aggregates.members):
                if draw.random() < 0.4:
                    aggregates.members[uuid] = frozenset(draw.sample([*NODES, "unknown"], draw.randrange(4)))
                    aggregates.version += 1
            if draw.random() < 0.1 and aggregates.members:
                uuid = draw.choice(sorted(aggregates.members))
                del aggregates.members[uuid]
                aggregates.gone |= {uuid}
                aggregates.version += 1
            await draw.choice(mirrors).heal()
        placement.trouble = 0.0
        before = dict(placement.providers)
        assert await mirrors[0].heal()
        ours = frozenset(aggregates.members)
        for name, (_, there) in placement.providers.items():
            had = before[name][1]
            assert there - frozenset(OURS) == had - frozenset(OURS), "others' aggregates are left alone"
            if name == DISK:
                assert there == had, "a provider that is no node is left alone"
            else:
                wanted = {uuid for uuid, members in aggregates.members.items() if name in members}
                assert there & ours == wanted
        assert not aggregates.gone
        writes = placement.writes
        assert await mirrors[1].heal()
        assert placement.writes == writes, "what agrees is not written"

    asyncio.run(run())


def test_every_schedule_of_lost_and_repeated_answers_ends_in_agreement() -> None:
    for seed in range(60):
        heals(seed)


@pytest.mark.nightly
def test_thousands_of_schedules_end_in_agreement() -> None:
    for seed in range(1000, 6000):
        heals(seed)


def test_difference_names_only_what_is_ours_and_only_nodes_leave() -> None:
    found = differences(
        {"one": {"a", "b"}, "two": set()},
        {"one": {"b", "c", DISK}, "two": {"a"}, "deleted": {"b", "stranger"}},
        {"a", "b", "c"},
    )
    assert found == {
        "a": AggregateDifference(frozenset({"one"}), frozenset({"two"})),
        "b": AggregateDifference(frozenset(), frozenset({"deleted"})),
        "c": AggregateDifference(frozenset(), frozenset({"one"})),
    }


@pytest.mark.parametrize("joins", [True, False])
def test_members_that_change_during_a_round_stay_as_they_were_said(joins: bool) -> None:
    async def run() -> None:
        aggregates, placement = Aggregates(), Placement(random.Random(0))
        node, uuid = NODES[0], OURS[0]
        aggregates.members[uuid] = frozenset(() if joins else (node,))
        nodes = aggregates.nodes

        async def slow_cell() -> KnownNodes:
            # The operator's word is said, brought to placement and answered while a cell is asked.
            aggregates.members[uuid] = frozenset((node,) if joins else ())
            aggregates.version += 1
            await bring(aggregates, placement, uuid, [node])
            return await nodes()

        aggregates.nodes = slow_cell  # type: ignore[method-assign]
        assert await mirror(aggregates, placement).heal()
        assert (uuid in placement.providers[node][1]) == joins

    asyncio.run(run())


@pytest.mark.parametrize("joins", [True, False])
def test_write_by_members_before_a_word_fails_after_its_answer(joins: bool) -> None:
    async def run() -> None:
        aggregates, placement = Aggregates(), Placement(random.Random(0))
        node, uuid = NODES[0], OURS[0]
        former, said = (frozenset[str](), {node}) if joins else (frozenset((node,)), set[str]())
        aggregates.members[uuid] = former
        # Somebody else has changed placement to what the operator says next: the word itself changes nothing.
        placement.providers[node] = 1, frozenset((uuid,) if joins else ())
        write = placement.set_aggregates

        async def late(provider: str, new: Iterable[str], generation: int | None = None) -> int:
            placement.set_aggregates = write  # type: ignore[method-assign]
            aggregates.members[uuid] = frozenset(said)
            await bring(aggregates, placement, uuid, [node])
            return await write(provider, new, generation)

        placement.set_aggregates = late  # type: ignore[method-assign]
        await align(aggregates, placement, node, [uuid])
        assert (uuid in placement.providers[node][1]) == joins

    asyncio.run(run())


def test_a_cell_that_is_away_holds_up_nobody_and_nothing_of_its_nodes_is_forgotten() -> None:
    async def run() -> None:
        aggregates, placement = Aggregates(), Placement(random.Random(0))
        here, there = NODES[:2]
        for node in (here, there):
            placement.providers[node] = 1, frozenset({"one", "deleted"})
        aggregates.gone = frozenset({"deleted"})
        aggregates.away = frozenset({there})
        healing = mirror(aggregates, placement)
        assert not await healing.heal()
        assert placement.providers[here][1] == frozenset()
        assert placement.providers[there][1] == {"one", "deleted"}
        assert aggregates.gone == {"deleted"}
        aggregates.away = frozenset()
        assert await healing.heal()
        assert placement.providers[there][1] == frozenset()
        assert aggregates.gone == frozenset()

    asyncio.run(run())


def test_provider_that_others_change_again_and_again_is_tried_later() -> None:
    async def run() -> None:
        aggregates, placement = Aggregates(), Placement(random.Random(0))
        aggregates.members["one"] = frozenset(NODES[:2])
        read = placement.aggregates

        async def changed_meanwhile(provider: str) -> frozenset[str]:
            if provider == NODES[0]:
                generation, there = placement.providers[provider]
                placement.providers[provider] = generation + 1, there
                reads.append(provider)
            return await read(provider)

        reads: list[str] = []
        placement.aggregates = changed_meanwhile  # type: ignore[method-assign]
        healing = mirror(aggregates, placement)
        assert not await healing.heal()
        assert len(reads) == 4
        assert placement.providers[NODES[1]][1] == {"one"}, "the others are not held up"
        placement.aggregates = read  # type: ignore[method-assign]
        assert await healing.heal()
        assert placement.providers[NODES[0]][1] == {"one"}

    asyncio.run(run())


def test_it_runs_after_each_change_and_again_after_a_failure(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            placement, aggregates = PlacementService(now.ledger), now.aggregates
            backoff = Backoff(first_seconds=0.001)
            healing = AggregateMirror(
                aggregates.store, placement, aggregates.nodes, aggregates.changed, 3600.0, backoff
            )
            failures = 3

            async def failing(aggregate: str) -> frozenset[str]:
                nonlocal failures
                if failures:
                    failures -= 1
                    raise DatabaseUnavailable("gone")
                return await providers_in_aggregate(aggregate)

            providers_in_aggregate = placement.providers_in_aggregate
            placement.providers_in_aggregate = failing  # type: ignore[method-assign]
            task = asyncio.create_task(healing.run())
            try:
                one = await aggregates.create("one", {})
                await aggregates.change_members(one.uuid, ["a", "b"], [])
                await until(now, one.uuid, {"node-a", "node-b"})
                async with asyncio.timeout(patience(30)):
                    while failures:  # the change itself may be in placement before the mirror has failed
                        await asyncio.sleep(0.01)
                await aggregates.change_members(one.uuid, [], ["a", "b"])
                await aggregates.delete(one.uuid)
                await until(now, one.uuid, set())
            finally:
                task.cancel()

    async def until(now: Any, aggregate: str, nodes: set[str]) -> None:
        async with asyncio.timeout(patience(30)):
            while await now.placement.providers_in_aggregate(aggregate) != nodes:
                await asyncio.sleep(0.01)

    asyncio.run(run())
