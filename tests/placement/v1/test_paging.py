"""Pages against the search itself: their union is exactly the candidates of the first page's version."""

import asyncio
import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet.candidates import CandidateSearch
from roost.ledger import Command, Ledger
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.placement.commands.allocations import DeleteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddResourceClass, AddTrait
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.errors import PlacementError
from roost.placement.http.app import document_at
from roost.placement.queries import QueryBudget
from roost.placement.v1.candidates import first_page, page_at
from roost.placement.v1.follower import ChangeFollower
from roost.placement.v1.parameters import canonical
from roost.placement.v1.past import Past
from roost.placement.v1.service import V1Service
from roost.web.limits import Limits
from support.fleets import AGGREGATES, CLASSES, TRAITS, inventories, queries, some, worlds
from support.ledgers import claim, opened
from support.oracle import SHARING, World

NAMES = tuple(f"p{number}" for number in range(8))
providers = st.sampled_from(NAMES)
writes: st.SearchStrategy[Command[Any]] = st.one_of(
    st.builds(CreateProvider, providers, providers, st.sampled_from([None, *NAMES])),
    st.builds(UpdateProvider, providers, providers, st.sampled_from([None, *NAMES])),
    st.builds(DeleteProvider, providers),
    st.builds(SetInventories, providers, st.dictionaries(st.sampled_from(CLASSES), inventories())),
    st.builds(SetTraits, providers, some((*TRAITS, SHARING)), add_custom=st.just(True)),
    st.builds(SetAggregates, providers, some(AGGREGATES), raises=st.booleans()),
    st.builds(claim, st.sampled_from(("c0", "c1", "c2")), providers, VCPU=st.integers(1, 4)),
    st.builds(DeleteAllocations, st.sampled_from(("c0", "c1", "c2"))),
)


async def make(ledger: Ledger, world: World) -> None:
    """Put a world into a ledger."""
    await ledger.execute(AddResourceClass("CUSTOM_GPU"))
    for trait in TRAITS:
        await ledger.execute(AddTrait(trait))
    for uuid, provider in world.items():
        await ledger.execute(CreateProvider(uuid, uuid, provider.parent))
        stock = {name: each for name, each in provider.inventories.items() if each.capacity >= 0}
        await ledger.execute(SetInventories(uuid, stock))
        await ledger.execute(SetTraits(uuid, provider.traits, add_custom=True))
        await ledger.execute(SetAggregates(uuid, provider.aggregates, raises=True))


def service_of(ledger: Ledger) -> V1Service:
    return V1Service(ledger, Past(ledger), ChangeFollower(ledger), QueryBudget(ledger, Limits()), document_at)


def shown(candidate: Candidate) -> dict[str, Any]:
    held = {uuid: {"resources": resources} for uuid, resources in candidate.allocations.items()}
    return {"allocations": held, "mappings": candidate.mappings}


def read(page: dict[str, Any]) -> Any:
    """A page as a client reads it."""
    return msgspec.json.decode(msgspec.json.encode(page))


async def read_while_others_write(
    path: Path, world: World, query: CandidateQuery, limit: int, batches: list[list[Command[Any]]]
) -> None:
    async with opened(path, 2) as ledgers:
        await make(ledgers[0], world)
        workers = [service_of(ledger) for ledger in ledgers]
        expected = [shown(each) for each in CandidateSearch(await ledgers[1].current(), query)]
        page = read(await first_page(workers[1], query, limit))
        found = page["allocation_requests"]
        turn = 0
        while page["next"] is not None:
            assert len(page["allocation_requests"]) == limit
            for command in batches[turn % len(batches)]:
                with contextlib.suppress(PlacementError):
                    await ledgers[turn % 2].execute(command)
            page = read(await page_at(workers[turn % 2], query, limit, page["next"]))
            found = found + page["allocation_requests"]
            turn += 1
        assert found == expected
        for worker in workers:
            worker.past.close()


CASES = given(
    worlds(),
    queries().map(canonical),
    st.integers(1, 3),
    st.lists(st.lists(writes, max_size=6), min_size=1, max_size=4),
)
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def check(world: World, query: CandidateQuery, limit: int, batches: list[list[Command[Any]]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(read_while_others_write(Path(folder) / "roost.db", world, query, limit, batches))


@CASES
@SETTINGS
def test_pages_read_on_any_worker_while_others_write_are_the_search(
    world: World, query: CandidateQuery, limit: int, batches: list[list[Command[Any]]]
) -> None:
    check(world, query, limit, batches)


@pytest.mark.nightly
@CASES
@settings(SETTINGS, max_examples=300)
def test_pages_are_the_search_whatever_is_written(
    world: World, query: CandidateQuery, limit: int, batches: list[list[Command[Any]]]
) -> None:
    check(world, query, limit, batches)
