"""A fleet that followed every commit is the fleet that the tables give, whatever the commands were."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.ledger import Command
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.inventories import DeleteInventory, SetInventories
from roost.placement.commands.names import (
    AddResourceClass,
    AddTrait,
    DeleteResourceClass,
    RenameResourceClass,
)
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.errors import PlacementError
from support.databases import KINDS, SERVERS, Place, Servers
from support.fleets import AGGREGATES, CLASSES, TRAITS, inventories, some
from support.ledgers import findings_in, holdings_of, loaded, opened, whole

PROVIDERS = ("p0", "p1", "p2", "p3")
NAMES = ("a", "b", "c", "d")
CONSUMERS = ("c0", "c1", "c2")

providers = st.sampled_from(PROVIDERS)
parents = st.sampled_from([None, *PROVIDERS])
names = st.sampled_from(NAMES)
consumers = st.sampled_from(CONSUMERS)
classes = st.sampled_from(("CUSTOM_GPU", "CUSTOM_NPU"))
resources = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=1)
writes = st.builds(
    ConsumerWrite,
    consumer=consumers,
    allocations=st.dictionaries(providers, resources, max_size=2),
    project_id=st.sampled_from(["project", "another"]),
    user_id=st.sampled_from(["user", "other"]),
    consumer_type=st.sampled_from([None, "INSTANCE"]),
)
commands: st.SearchStrategy[Command[Any]] = st.one_of(
    st.builds(CreateProvider, providers, names, parents),
    st.builds(UpdateProvider, providers, names, parents),
    st.builds(DeleteProvider, providers),
    st.builds(SetInventories, providers, st.dictionaries(st.sampled_from(CLASSES), inventories())),
    st.builds(DeleteInventory, providers, st.sampled_from(CLASSES)),
    st.builds(SetTraits, providers, some(TRAITS), add_custom=st.just(True)),
    st.builds(SetAggregates, providers, some(AGGREGATES), raises=st.booleans()),
    st.builds(WriteAllocations, st.lists(writes, min_size=1, max_size=2, unique_by=lambda w: w.consumer)),
    st.builds(WriteAllocations, st.tuples(writes)),
    st.builds(DeleteAllocations, consumers),
    st.builds(AddResourceClass, classes),
    st.builds(RenameResourceClass, classes, classes),
    st.builds(DeleteResourceClass, classes),
    st.builds(AddTrait, st.sampled_from(TRAITS)),
)
batches = st.lists(st.lists(commands, min_size=1, max_size=12), min_size=1, max_size=5)
SET_UP: tuple[Command[Any], ...] = (AddResourceClass("CUSTOM_GPU"), CreateProvider("p0", "a"))


async def follow(place: Place, drawn: list[list[Command[Any]]], trim: bool) -> None:
    async with opened(place, 2) as [writer, tail]:
        for command in SET_UP:
            await writer.execute(command)
        for number, batch in enumerate(drawn):
            answers = await asyncio.gather(*map(writer.execute, batch), return_exceptions=True)
            errors = [answer for answer in answers if isinstance(answer, BaseException)]
            assert all(isinstance(error, PlacementError) for error in errors), errors
            if number % 2:
                assert whole(await tail.current()) == whole(await writer.current())
        if trim:
            await writer.trim(3, 0.0)
        before, held = whole(await writer.current()), holdings_of(writer.database)
        assert whole(await tail.current()) == before
    assert findings_in(place) == []
    async with opened(place) as [restarted]:
        assert whole(await restarted.current()) == before == loaded(restarted.database)
        assert holdings_of(restarted.database) == held


def followed(servers: Servers, kind: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(drawn=batches, trim=st.booleans())
    def follows(drawn: list[list[Command[Any]]], trim: bool) -> None:
        with TemporaryDirectory() as folder, servers.place(kind, Path(folder)) as place:
            asyncio.run(follow(place, drawn, trim))

    follows()


@pytest.mark.parametrize(("kind", "examples"), [("sqlite", 30), *((kind, 3) for kind in SERVERS)])
def test_a_restart_changes_nothing(servers, kind, examples):
    followed(servers, kind, examples)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_changes_nothing_at_length(servers, kind):
    followed(servers, kind, 150 if kind == "sqlite" else 50)
