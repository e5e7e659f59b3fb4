"""A list of hosts that serves for some seconds: placement is asked once, and again when it was wrong."""

import pytest

from roost.placement.commands.allocations import WriteAllocations
from roost.scheduler import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import flat, holding, spec, uuid_of
from support.wire import Room, Within

ASKED = "GET /allocation_candidates"


async def place(room: Room, number: int, vcpus: int = 1) -> str:
    [placed] = await room.scheduler.select_destinations(HostRequest(spec(vcpus), (uuid_of(0xB00 + number),)))
    return placed.selected.host


def asked(room: Room) -> int:
    return room.wire.asked.count(ASKED)


def test_placement_is_asked_once_for_requests_that_are_alike(within: Within) -> None:
    async def work(room: Room) -> None:
        assert [await place(room, number) for number in range(4)] == ["host0", "host1", "host0", "host1"]
        assert asked(room) == 1
        room.passed = 30.0
        await place(room, 9)
        assert asked(room) == 2

    within(flat(2), work, host_list_seconds=30.0)


def test_without_the_option_it_is_asked_each_time(within: Within) -> None:
    async def work(room: Room) -> None:
        await place(room, 0)
        await place(room, 1)
        assert asked(room) == 2

    within(flat(2), work)


def test_claims_count_in_the_lists_of_other_requests(within: Within) -> None:
    async def work(room: Room) -> None:
        await place(room, 0, 4)
        assert await place(room, 1, 1) == "host1"
        # The list for 4 vCPUs knows of it: the first host has 4 left, the second one 7.
        assert await place(room, 2, 4) == "host1"
        assert asked(room) == 2

    within(flat(2), work, host_list_seconds=30.0)


def test_list_that_was_wrong_is_not_used_again(within: Within) -> None:
    async def work(room: Room) -> None:
        assert await place(room, 0, 8) == "host0"
        write = holding(uuid_of(0xBB), {uuid_of(1): {"VCPU": 8}})
        await room.ledger.execute(WriteAllocations((write,)))
        with pytest.raises(NoValidHost, match="every claim was refused"):
            await place(room, 1, 8)
        with pytest.raises(NoValidHost, match="placement has no candidates"):
            await place(room, 2, 8)
        assert asked(room) == 2

    within(flat(2), work, host_list_seconds=30.0, explain_seconds=0.0)


def test_run_that_came_to_nothing_takes_its_list_with_it(within: Within) -> None:
    """What such a run had claimed is freed, but is taken off the list."""

    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost):
            await room.place(3, vcpus=8)
        assert await place(room, 1, 8) == "host0"
        assert asked(room) == 2

    within(flat(2), work, host_list_seconds=30.0, explain_seconds=0.0)
