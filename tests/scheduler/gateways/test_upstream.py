"""OpenStack's Placement 16.0 as the foreign service: the same requests, the same placements.

What Roost's `/v1` has beside the Placement API, upstream's has not: server groups and assignments.
"""

import asyncio
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.services import Upstream
from roost.model.inventory import Inventory
from roost.model.record import Step
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.scheduler import NoValidHost, Scheduler, SchedulerError
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from roost.scheduler.selection.selection import OFFERED
from roost.web.auth.credentials import FixedCredentials
from support.clouds import (
    GPU,
    NOW,
    TRAITS,
    Ask,
    Cloud,
    Kept,
    Provider,
    asks,
    clouds,
    filled,
    flat,
    over_http,
    uuid_of,
)
from support.clouds import spec as spec_of
from support.told_calls import within

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
INSTANCES = tuple(uuid_of(0xA0 + number) for number in range(4))


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    service = Upstream()
    yield service
    service.close()


def client_of(upstream: Upstream) -> HttpPlacement:
    return HttpPlacement(FixedCredentials("http://placement", "admin"), client=within(upstream))


async def fill(placement: HttpPlacement, cloud: Cloud) -> None:
    """Put a cloud's providers into a service over HTTP, as an operator does."""
    for name in sorted({GPU, *(name for each in cloud.providers for name in each.inventories)}):
        if name.startswith("CUSTOM_"):
            await placement.ensure_resource_class(name)
    holder = Provider(uuid_of(0xEEEE), {})
    await placement.ensure_provider(holder.uuid, "holder of traits")
    await placement.set_traits(holder.uuid, TRAITS)
    await placement.delete_provider(holder.uuid)
    for number, each in enumerate(cloud.providers):
        await placement.ensure_provider(each.uuid, f"name of {each.uuid}", each.parent)
        await placement.set_inventories(each.uuid, each.inventories)
        await placement.set_traits(each.uuid, each.traits)
        await placement.set_aggregates(each.uuid, each.aggregates)
        if each.used:
            write = ConsumerWrite(
                consumer=uuid_of(0xF000 + number),
                allocations={each.uuid: each.used},
                project_id="p",
                user_id="u",
                consumer_type="INSTANCE",
                generation=None,
            )
            await placement.write_allocations([write])


async def answers(placement: HttpPlacement, cloud: Cloud, requests: list[Ask]) -> list[Any]:
    """For each request the hosts and the steps of its run, and what its instances hold then."""
    kept = Kept()
    scheduler = Scheduler(HttpGateway(placement, HostPools(cloud.table())), kept, lambda: NOW)
    found: list[Any] = []
    for ask in requests:
        try:
            placed = await scheduler.select_destinations(
                HostRequest(ask.spec, tuple(ask.instances), ask.num_alternates, min_count=ask.min_count)
            )
        except (SchedulerError, PlacementError) as error:
            found.append(type(error))
        else:
            found.append(
                [
                    (each.instance, each.selected.host, [other.host for other in each.alternates])
                    for each in placed
                ]
            )
        names = [step.name for step in kept.runs[-1].steps]
        steps = kept.runs[-1].steps[names.index(OFFERED) :] if OFFERED in names else ()
        held = [await placement.allocations_of(name) for name in ask.instances]
        found[-1] = (found[-1], steps, [None if each is None else each.allocations for each in held])
    return found


def _amounts(allocations: dict[str, dict[str, int]] | None) -> dict[str, int]:
    """The amounts of all providers together: of several candidates of one host either will do."""
    total: dict[str, int] = {}
    for resources in (allocations or {}).values():
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def without_groups(ask: Ask) -> Ask:
    """The request without a server group, whose members upstream does not know."""
    return Ask(
        msgspec.structs.replace(ask.spec, group=None), ask.instances, ask.min_count, ask.num_alternates
    )


def sequences() -> st.SearchStrategy[list[Ask]]:
    counted = st.integers(1, 3).flatmap(lambda count: st.tuples(*map(asks, range(count))))
    return counted.map(lambda found: [*map(without_groups, found)])


def _compare(upstream: Upstream, empty: Path, cloud: Cloud, requests: list[Ask]) -> None:
    async def main(folder: Path) -> None:
        upstream.reset()
        async with client_of(upstream) as foreign, filled(folder / "roost.db", cloud, empty) as ledger:
            await fill(foreign, cloud)
            found = await answers(foreign, cloud, requests)
            async with over_http(ledger) as own:
                expected = await answers(own, cloud, requests)
        for theirs, ours in zip(found, expected, strict=True):
            assert theirs[:2] == ours[:2]
            assert [*map(_amounts, theirs[2])] == [*map(_amounts, ours[2])]
            if theirs[2] != ours[2]:
                # Of several candidates of one host each service names another first. What follows may differ.
                return

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(main(Path(folder)))


GIVEN = given(clouds(5), sequences())


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@GIVEN
def test_the_same_placements(
    upstream: Upstream, empty_database: Path, cloud: Cloud, requests: list[Ask]
) -> None:
    _compare(upstream, empty_database, cloud, requests)


@pytest.mark.nightly
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@GIVEN
def test_the_same_placements_of_many(
    upstream: Upstream, empty_database: Path, cloud: Cloud, requests: list[Ask]
) -> None:
    _compare(upstream, empty_database, cloud, requests)


def on(upstream: Upstream, cloud: Cloud, work: Callable[[HttpPlacement, Scheduler], Awaitable[None]]) -> None:
    async def main() -> None:
        upstream.reset()
        async with client_of(upstream) as placement:
            await fill(placement, cloud)
            await work(
                placement,
                Scheduler(HttpGateway(placement, HostPools(cloud.table())), Kept(), clock=lambda: NOW),
            )

    asyncio.run(main())


def test_claims_alternates_and_refusals(upstream: Upstream) -> None:
    async def work(placement: HttpPlacement, scheduler: Scheduler) -> None:
        spec = spec_of(vcpus=8)
        [one] = await scheduler.select_destinations(HostRequest(spec, tuple(INSTANCES[:1]), 1))
        held = await placement.allocations_of(INSTANCES[0])
        assert held is not None
        assert held.allocations == one.selected.allocations
        assert held.consumer.consumer_type == "INSTANCE"
        swapped = await scheduler.use_alternate(
            AlternateRequest(
                spec,
                one.instance,
                one.selected,
                one.alternates,
                reason="no IP",
                run=one.run,
                request_id="req-1",
            )
        )
        assert swapped.selected is not None
        held = await placement.allocations_of(INSTANCES[0])
        assert held is not None
        assert (held.allocations, held.consumer.generation) == (swapped.selected.allocations, 2)
        with pytest.raises(PlacementError, match="consumer generation conflict"):
            await scheduler.select_destinations(HostRequest(spec, tuple(INSTANCES[:1])))
        await scheduler.select_destinations(HostRequest(spec, tuple(INSTANCES[1:2])))
        with pytest.raises(NoValidHost) as refused:
            await scheduler.select_destinations(HostRequest(spec, tuple(INSTANCES[2:3])))
        assert refused.value.steps == (Step("hosts known", 2), Step("hosts with candidates", 0))
        with pytest.raises(SchedulerError, match="CUSTOM_NOBODY"):
            wrong = spec_of(extra_specs={"trait:CUSTOM_NOBODY": "required"})
            await scheduler.select_destinations(HostRequest.new(wrong, 1))

    on(upstream, flat(2), work)


def test_hosts_of_upstream_are_found(upstream: Upstream) -> None:
    pool = Provider(uuid_of(9), {"DISK_GB": Inventory(10)}, traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
    cloud = flat(2)
    cloud.providers += [pool, Provider(uuid_of(7), {GPU: Inventory(1)}, uuid_of(0))]

    async def work(placement: HttpPlacement, scheduler: Scheduler) -> None:
        assert set(await placement.hosts()) == {uuid_of(0), uuid_of(1)}
        assert await placement.root()

    on(upstream, cloud, work)
