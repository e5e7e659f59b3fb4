"""The scheduler on a real `roost serve`, over sockets."""

import asyncio
from pathlib import Path

from roost.placement.client import HttpPlacement
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.errors import PlacementUnavailable
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.web.auth.credentials import FixedCredentials
from support.clouds import GPU, NOW, Cloud, Kept, filled, flat, spec, uuid_of
from support.serving import Serving


async def place(url: str, cloud: Cloud) -> None:
    async with HttpPlacement(FixedCredentials(url, "admin")) as placement:
        gateway = HttpGateway(placement, HostPools(cloud.table()))
        scheduler = Scheduler(gateway, Kept(), clock=lambda: NOW)
        instances = [uuid_of(0xA0), uuid_of(0xA1)]
        first, second = await scheduler.select_destinations(HostRequest(spec(2), tuple(instances), 1))
        assert (first.selected.host, second.selected.host) == ("host0", "host1")
        assert [other.host for other in first.alternates] == ["host2"]
        for destination in (first, second):
            held = await placement.allocations_of(destination.instance)
            assert held is not None
            assert held.allocations == destination.selected.allocations
            assert (held.consumer.consumer_type, held.consumer.project_id) == ("INSTANCE", "project")

        # Two schedulers that know nothing of each other: placement keeps them apart.
        async def one() -> bool:
            try:
                await scheduler.select_destinations(HostRequest.new(spec(4), 1))
            except NoValidHost:
                return False
            return True

        placed = await asyncio.gather(*(one() for _ in range(8)))
        assert sum(placed) == 4


async def ask_nobody(url: str, cloud: Cloud) -> None:
    async with HttpPlacement(FixedCredentials(url, "admin")) as placement:
        scheduler = Scheduler(HttpGateway(placement, HostPools(cloud.table())), Kept(), clock=lambda: NOW)
        try:
            await scheduler.select_destinations(
                HostRequest.new(spec(extra_specs={f"resources:{GPU}": "1"}), 1)
            )
        except PlacementUnavailable as error:
            assert "cannot be reached" in str(error)
        else:
            raise AssertionError("nobody listens there any more")


def test_with_a_real_server(tmp_path: Path) -> None:
    cloud = flat(3)

    async def prepare() -> None:
        async with filled(tmp_path / "roost.db", cloud):
            pass

    asyncio.run(prepare())
    serving = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log", workers=2)
    try:
        asyncio.run(place(serving.url, cloud))
    finally:
        serving.end()
    asyncio.run(ask_nobody(serving.url, cloud))
