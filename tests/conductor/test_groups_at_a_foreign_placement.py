"""Server groups of a conductor whose scheduler uses a placement service that knows no groups."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from roost.ledger.holdings import held_by_all
from roost.model.allocation import GroupPolicy
from roost.model.instance import BuildRequest
from roost.model.spec import ServerGroup
from roost.placement.client import HttpPlacement
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.build_requests import AcceptRequest
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.web.auth.credentials import FixedCredentials
from support.clouds import NOW, Kept, filled, flat, spec, uuid_of
from support.wire import Wire, nothing


@pytest.mark.parametrize(("policy", "ends_on"), [("anti-affinity", [1, 1, 1, 1]), ("affinity", [4])])
def test_requests_at_the_same_moment_keep_to_their_group(
    tmp_path: Path, policy: GroupPolicy, ends_on: list[int]
) -> None:
    """Each has a scheduler of its own. The members come from what the conductors accepted."""
    cloud = flat(6)
    wanted = [
        BuildRequest(
            request_id=f"req{number}",
            spec=spec(group=ServerGroup("group", policy)),
            instances=(uuid_of(0xA0 + number),),
            min_count=1,
        )
        for number in range(4)
    ]

    async def run() -> Counter[str]:
        async with filled(tmp_path / "roost.db", cloud) as ledger:
            requests, groups = Requests(ledger.database), ServerGroups(ledger.database)
            client = httpx.AsyncClient(transport=Wire(ledger, nothing))
            placement = HttpPlacement(FixedCredentials("http://placement", "admin"), client=client)

            async def place(request: BuildRequest) -> None:
                await requests.database.write(AcceptRequest(request, NOW))
                gateway = HttpGateway(
                    placement,
                    HostPools(cloud.table()),
                    groups.consumers,
                    sleep=lambda _: asyncio.sleep(0.001),
                )
                scheduler = Scheduler(gateway, Kept(), clock=lambda: NOW)
                for _ in range(5):  # As a conductor does, whose request may lose to others.
                    try:
                        await scheduler.select_destinations(
                            HostRequest(request.spec, tuple(request.instances))
                        )
                    except NoValidHost:
                        continue
                    return

            async with placement:
                await asyncio.gather(*map(place, wanted))
            held = ledger.database.read_now(held_by_all)
            return Counter(provider for one in held.values() for provider in one.allocations)

    assert sorted(asyncio.run(run()).values()) == ends_on
