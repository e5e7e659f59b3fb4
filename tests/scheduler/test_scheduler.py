"""`select_destinations` with a ledger: which hosts are claimed."""

import asyncio
from typing import Any

import pytest

from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import (
    AGGREGATES,
    Cloud,
    Provider,
    flat,
    holding,
    replace_report,
    report,
    spec,
    uuid_of,
)
from support.scheduling import INSTANCES, Room, Within


def test_what_is_selected_is_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.place(2, 1, 2, 2048, 20) == ["host0", "host1"]
        claim = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 20}
        assert room.held() == {INSTANCES[0]: {uuid_of(0): claim}, INSTANCES[1]: {uuid_of(1): claim}}

    within(flat(3), work)


def test_all_or_nothing_leaves_nothing_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.refusal(5, 0, 4) == (
            "only 4 of 5 instances fit: none of 2 hosts has 4 VCPU free; "
            "the closest, host0, has 0 of the 4 VCPU wanted"
        )
        assert room.held() == {}
        assert await room.place(5, 0, 4, min_count=3) == ["host0", "host1", "host0", "host1"]
        assert set(room.held()) == set(INSTANCES[:4])

    within(flat(2), work)


def test_requested_host(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await room.place(2, 2, requested_host="host1") == ["host1", "host1"]
        assert room.kept.attempts[0].host == "host1"

    within(flat(3), work)


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"ignore_hosts": frozenset({"host1"})}, "is one of the ignored hosts"),
        ({"availability_zone": "az1"}, "is in the zone nova"),
    ],
)
def test_requested_host_must_do_in_every_other_way(
    within: Within, wishes: dict[str, Any], reason: str
) -> None:
    async def work(room: Room) -> None:
        said = await room.refusal(requested_host="host1", **wishes)
        assert said.endswith(f"; that one, host1, {reason}")

    within(flat(3), work)


def test_zone_in_placement_and_in_the_filter(within: Within) -> None:
    cloud = flat(3)
    zone = HostAggregate(AGGREGATES[0], "zone", {"availability_zone": "az1"})
    cloud.reports[2] = replace_report(cloud.reports[2], aggregates=(zone,))
    cloud.providers[2].aggregates = frozenset({AGGREGATES[0]})

    async def work(room: Room) -> None:
        assert await room.place(availability_zone="az1") == ["host2"]

    within(cloud, work)


def test_zone_with_granular_groups_only(within: Within) -> None:
    zone = HostAggregate(AGGREGATES[0], "zone", {"availability_zone": "az1"})
    cloud = Cloud(
        [
            Provider(uuid_of(0), {}),
            Provider(uuid_of(1), {}, aggregates=frozenset({AGGREGATES[0]})),
            Provider(uuid_of(10), {"VCPU": Inventory(4)}, uuid_of(0)),
            Provider(uuid_of(11), {"VCPU": Inventory(4)}, uuid_of(1)),
        ],
        [report("host0", uuid_of(0)), report("host1", uuid_of(1), aggregates=(zone,))],
    )
    extra = {"resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources_cpu:VCPU": "2"}

    async def work(room: Room) -> None:
        assert await room.place(extra_specs=extra, availability_zone="az1") == ["host1"]
        assert room.held() == {INSTANCES[0]: {uuid_of(11): {"VCPU": 2}}}

    within(cloud, work)


def test_instance_that_holds_something_already(within: Within) -> None:
    async def work(room: Room) -> None:
        mine = {uuid_of(0): {"VCPU": 1}}
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[1], mine),)))
        with pytest.raises(ConcurrentUpdate):
            await room.place(2)
        assert room.held() == {INSTANCES[1]: mine}
        [run] = room.kept.runs
        assert run.refusal is not None
        assert "consumer generation conflict" in run.refusal

    within(flat(2), work)


@pytest.mark.parametrize(
    "arguments",
    [
        {"instances": ()},
        {"instances": (INSTANCES[0],) * 2},
        {"instances": tuple(INSTANCES[:2]), "min_count": 3},
        {"instances": tuple(INSTANCES[:2]), "min_count": -1},
        {"instances": tuple(INSTANCES[:1]), "num_alternates": -1},
    ],
)
def test_arguments_that_do_not_go_together(within: Within, arguments: dict[str, Any]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(ValueError, match="do not go together"):
            await room.scheduler.select_destinations(HostRequest(spec(), **arguments))

    within(flat(1), work)


def test_instances_are_made_up_if_not_given(within: Within) -> None:
    async def work(room: Room) -> None:
        destinations = await room.scheduler.select_destinations(HostRequest.new(spec(), 3))
        assert len({each.instance for each in destinations}) == 3
        assert {each.run for each in destinations} == {room.kept.runs[0].id}

    within(flat(1), work)


def test_concurrent_requests_never_oversubscribe(within: Within) -> None:
    async def work(room: Room) -> None:
        async def one() -> bool:
            try:
                await room.scheduler.select_destinations(HostRequest.new(spec(2), 1))
            except NoValidHost:
                return False
            return True

        placed = await asyncio.gather(*(one() for _ in range(30)))
        assert sum(placed) == 12

    within(flat(3), work)
