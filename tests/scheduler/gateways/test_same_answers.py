"""Both gateways give the same answers to the same requests, on the same state to begin with."""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.allocation import HandedClaim, KeptAllocations, sum_of
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.errors import PlacementError
from roost.scheduler import Scheduler, SchedulerError, SchedulerOptions
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.scheduler import seeds_from
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.selection import OFFERED
from roost.storage import Database
from support.clouds import NOW, Ask, Cloud, Kept, asks, clouds, filled, over_http, uuid_of
from support.offering import by_metrics

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Nothing here need survive, and two syncs for each claim would be most of the time."""

OPTIONS = [
    SchedulerOptions(),
    SchedulerOptions(multipliers={"RAMWeigher": -1.0, "CPUWeigher": -1.0}),
    SchedulerOptions(host_subset_size=3, plugins=by_metrics({"heat": -1.0})),
]


async def answers(
    gateway: Gateway,
    requests: list[Ask],
    database: Database,
    seed: int,
) -> list[Any]:
    """What comes of each request, as plain data without the runs' ids; at last what everyone holds."""
    kept = Kept()
    scheduler = Scheduler(gateway, kept, lambda: NOW, seeds=seeds_from(random.Random(seed)))
    found: list[Any] = []
    for ask in requests:
        try:
            destinations = await scheduler.select_destinations(
                HostRequest(ask.spec, tuple(ask.instances), ask.num_alternates, min_count=ask.min_count)
            )
        except (SchedulerError, PlacementError) as error:
            found.append(type(error))
        else:
            found.append([(each.instance, each.selected, each.alternates) for each in destinations])
        run = kept.runs.pop()
        # What placement says of its own narrowing only the ledger knows.
        names = [step.name for step in run.steps]
        steps = run.steps[:1] + run.steps[names.index(OFFERED) :] if OFFERED in names else ()
        if names and run.steps[names.index(OFFERED)].left:
            found.append(run.refusal)
        found.append(list(steps))
        found.append([(each.instance, each.host, each.weight, each.result) for each in kept.attempts])
        kept.attempts.clear()
    held = database.read_now(held_by_all)
    found.append({consumer: (one.consumer.consumer_type, one.allocations) for consumer, one in held.items()})
    return found


async def compare(
    folder: Path, empty: Path, cloud: Cloud, requests: list[Ask], options: SchedulerOptions, seed: int
) -> None:
    async with (
        filled(folder / "local.db", cloud, empty) as local,
        filled(folder / "http.db", cloud, empty) as remote,
        over_http(remote) as placement,
    ):
        expected = await answers(
            LocalGateway(local, HostPools(cloud.table(), options)), requests, local.database, seed
        )
        found = await answers(
            HttpGateway(placement, HostPools(cloud.table(), options)), requests, remote.database, seed
        )
    for one, other in zip(expected, found, strict=True):
        assert one == other


def sequences() -> st.SearchStrategy[list[Ask]]:
    return st.integers(1, 4).flatmap(lambda count: st.tuples(*map(asks, range(count)))).map(list)


async def moves(
    gateway: Gateway, ledger: Ledger, requests: list[Ask], ways: list[str], chosen: random.Random
) -> list[Any]:
    """What comes of requests, and of moves of an instance that each of them has placed.

    An instance is moved as Nova evacuates, beside what it holds; or as Nova resizes and migrates, from what a
    migration holds for it; or it hands what it holds to its migration by the claim itself.
    """
    kept = Kept()
    scheduler = Scheduler(gateway, kept, lambda: NOW, seeds=lambda: 0)
    found: list[Any] = []

    async def decide(request: HostRequest) -> list[str]:
        try:
            destinations = await scheduler.select_destinations(request)
        except (SchedulerError, PlacementError) as error:
            found.append(type(error))
            return []
        found.append([(each.instance, each.selected, each.alternates) for each in destinations])
        return [each.instance for each in destinations]

    for number, (ask, way) in enumerate(zip(requests, ways, strict=True)):
        placed = await decide(HostRequest(ask.spec, tuple(ask.instances), min_count=ask.min_count))
        if not placed:
            continue
        instance, migration = chosen.choice(placed), uuid_of(0xD000 + number)
        before = ledger.database.read_now(held_by_all)[instance]
        if way == "beside":
            beside = KeptAllocations(before.allocations, before.consumer.generation)
            moved = await decide(HostRequest(ask.spec, (instance,), 1, beside={instance: beside}))
            event(f"beside, {bool(moved)}")
            new = found[-1][0][1].allocations if moved else {}
            assert ledger.database.read_now(held_by_all)[instance].allocations == sum_of(
                before.allocations, new
            )
        elif way == "handed to a migration":
            handed_over = HandedClaim(before.allocations, before.consumer.generation, consumer=migration)
            moved = await decide(HostRequest(ask.spec, (instance,), 1, handed={instance: handed_over}))
            event(f"handed, {bool(moved)}, {ask.spec.group and ask.spec.group.policy}")
            after = ledger.database.read_now(held_by_all)
            if moved:
                assert after[instance].allocations == found[-1][0][1].allocations
                assert after[migration].allocations == before.allocations
                assert after[migration].consumer.group == before.consumer.group
            else:
                assert after[instance].allocations == before.allocations
                assert migration not in after
        else:
            owner = {"project_id": "project", "user_id": "user"}
            handed = (
                ConsumerWrite(consumer=instance, allocations={}, **owner),  # type: ignore[arg-type]
                ConsumerWrite(consumer=migration, allocations=before.allocations, **owner),  # type: ignore[arg-type]
            )
            await ledger.execute(WriteAllocations(handed))
            moved = await decide(HostRequest(ask.spec, (instance,), 1, held_by={instance: migration}))
            event(f"held, {bool(moved)}, {ask.spec.group and ask.spec.group.policy}")
    found.append({name: each.allocations for name, each in ledger.database.read_now(held_by_all).items()})
    return found


async def compare_moves(
    folder: Path, empty: Path, cloud: Cloud, requests: list[Ask], ways: list[str], seed: int
) -> None:
    async with (
        filled(folder / "local.db", cloud, empty) as local,
        filled(folder / "http.db", cloud, empty) as remote,
        over_http(remote) as placement,
    ):
        inside, over = (HostPools(cloud.table(), SchedulerOptions()) for _ in range(2))
        expected = await moves(LocalGateway(local, inside), local, requests, ways, random.Random(seed))
        found = await moves(HttpGateway(placement, over), remote, requests, ways, random.Random(seed))
    for one, other in zip(expected, found, strict=True):
        assert one == other


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    clouds(),
    sequences(),
    st.lists(
        st.sampled_from(["beside", "held by a migration", "handed to a migration"]), min_size=4, max_size=4
    ),
    st.integers(0, 3),
)
def test_both_gateways_move_instances_alike(
    empty_database: Path, cloud: Cloud, requests: list[Ask], ways: list[str], seed: int
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        work = compare_moves(Path(folder), empty_database, cloud, requests, ways[: len(requests)], seed)
        asyncio.run(work)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(clouds(), sequences(), st.sampled_from(OPTIONS), st.integers(0, 3))
def test_both_gateways_answer_alike(
    empty_database: Path, cloud: Cloud, requests: list[Ask], options: SchedulerOptions, seed: int
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        asyncio.run(compare(Path(folder), empty_database, cloud, requests, options, seed))
