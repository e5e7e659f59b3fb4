"""Assignments over HTTP: what placement tells, what is read again, and what a scheduler remembers itself."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import msgspec
import pytest

from roost.ledger.holdings import held_by_all
from roost.model.allocation import KeptAllocations
from roost.model.assignment import Assignment
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import NoValidHost
from roost.scheduler.errors import PlacementUnavailable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import spec, uuid_of
from support.hardware_clouds import OPTIONS, REQUESTS, check_assignments, hardware_cloud, node_report
from support.wire import INSTANCES, Answer, Room, Within

PINNED, DEVICES = REQUESTS[0], REQUESTS[4]
FILTERS: dict[str, Any] = {"filters": OPTIONS.filters, "pci": OPTIONS.pci}


def assigned(room: Room) -> dict[str, Assignment]:
    held = room.ledger.database.read_now(held_by_all)
    found = {uuid: each.consumer.assignment for uuid, each in held.items()}
    return {uuid: each for uuid, each in found.items() if each is not None}


def test_several_instances_get_different_cpus_and_each_is_told_its_own(within: Within) -> None:
    async def work(room: Room) -> None:
        found = await room.scheduler.select_destinations(HostRequest(PINNED, tuple(INSTANCES), 1))
        told = {each.instance: each.selected.assignment for each in found}
        assert told == assigned(room)
        check_assignments(assigned(room).values())
        assert [each.alternates for each in found] == [()] * 4
        assert room.wire.asked.count("POST /v1/allocations") == 1

    within(hardware_cloud(1), work, v1=True, **FILTERS)


def test_a_request_for_nothing_of_the_kind_asks_for_no_assignments(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.scheduler.select_destinations(HostRequest(spec(1, 1024, 0), tuple(INSTANCES[:1]), 0))
        assert room.wire.asked == ["GET /allocation_candidates", "POST /allocations"]

    within(hardware_cloud(2), work, v1=True, **FILTERS)


@pytest.mark.parametrize("claims", [1, 2])
def test_a_host_that_others_were_assigned_some_of_is_fitted_again(within: Within, claims: int) -> None:
    """It is the only host, and has room for both."""
    room_of: list[Room] = []
    times = [1]

    async def meddle(request: httpx.Request) -> Answer:
        if request.method == "POST" and times[0]:
            times[0] -= 1
            write, *_ = msgspec.json.decode(request.content).values()
            taken = msgspec.convert(
                {name: each for name, each in write["assignment"].items() if name != "beside"}, Assignment
            )
            other = ConsumerWrite(
                consumer=uuid_of(0xBEE),
                allocations={taken.node: {"PCPU": 2}},
                project_id="p",
                user_id="u",
                assignment=taken,
            )
            await room_of[0].ledger.execute(WriteAllocations((other,)))
        return None

    async def work(room: Room) -> None:
        room_of.append(room)
        await room.scheduler.select_destinations(HostRequest(PINNED, tuple(INSTANCES[:claims]), 0))
        assert set(assigned(room)) == {uuid_of(0xBEE), *INSTANCES[:claims]}
        check_assignments(assigned(room).values())

    within(hardware_cloud(1), work, meddle, v1=True, **FILTERS)


def test_an_alternate_gets_an_assignment_of_its_own_and_a_second_call_tells_it(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.scheduler.select_destinations(HostRequest(PINNED, tuple(INSTANCES[:1]), 1))
        first = one.selected.assignment
        request = AlternateRequest(PINNED, one.instance, one.selected, one.alternates, reason="no disk")
        swapped = await room.scheduler.use_alternate(request)
        assert swapped.selected is not None
        assert assigned(room) == {one.instance: swapped.selected.assignment}
        assert swapped.selected.assignment != first
        again = await room.scheduler.use_alternate(request)
        assert again.selected is not None
        assert again.selected.assignment == swapped.selected.assignment

    within(hardware_cloud(2), work, v1=True, **FILTERS)


def test_a_claim_beside_that_is_taken_back_leaves_the_source_its_hardware(within: Within) -> None:
    rooms: list[Room] = []
    lost: list[httpx.Request] = []

    async def lose(request: httpx.Request) -> Answer:
        if rooms and request.method == "POST" and not lost:
            lost.append(request)
            answer = await rooms[0].wire.service.handle_async_request(request)
            assert answer.is_success
            assert assigned(rooms[0])[INSTANCES[0]] != source[0]
            raise httpx.ReadTimeout("", request=request)
        return None

    source: list[Assignment | None] = []

    async def work(room: Room) -> None:
        [one] = await room.scheduler.select_destinations(HostRequest(PINNED, tuple(INSTANCES[:1]), 0))
        held = (await room.placement.holdings([one.instance]))[one.instance]
        source.append(held.consumer.assignment)
        assert source == [one.selected.assignment] != [None]
        rooms.append(room)
        kept = KeptAllocations(held.allocations, held.consumer.generation, held.consumer.assignment)
        moves = msgspec.structs.replace(PINNED, ignore_hosts=frozenset({one.selected.host}))
        with pytest.raises(PlacementUnavailable):
            await room.scheduler.select_destinations(
                HostRequest(moves, (one.instance,), 0, beside={one.instance: kept})
            )
        assert lost
        assert room.held() == {one.instance: held.allocations}
        assert assigned(room) == {one.instance: one.selected.assignment}

    within(hardware_cloud(2), work, lose, v1=True, **FILTERS)


def test_a_scheduler_remembers_what_it_assigned_where_placement_keeps_nothing(within: Within) -> None:
    """OpenStack's placement. The node's reports come late, and runs choose at the same time."""

    async def work(room: Room) -> None:
        told: dict[str, Assignment] = {}

        async def place(name: str) -> bool:
            try:
                [one] = await room.scheduler.select_destinations(HostRequest(PINNED, (name,), 0))
            except NoValidHost:
                return False
            assert one.selected.assignment is not None
            told[name] = one.selected.assignment
            return True

        placed = await asyncio.gather(*map(place, INSTANCES))
        room.scheduler.table.update([node_report(0, {})])
        # Two cells of 512 huge pages have room for two guests of 256 each, and both have four CPUs.
        assert Counter(placed) == {True: 4}
        check_assignments(told.values())
        assert not await place(uuid_of(0xC0))
        # The node reports one guest: it counts once. Another one is gone: its CPUs are free again.
        first, second, *_ = told
        room.scheduler.table.update([node_report(0, {first: told[first]})])
        assert not await place(uuid_of(0xC1))
        room.scheduler.table.release(second)
        await room.placement.delete_allocations([second])
        del told[second]
        assert await place(uuid_of(0xC2))
        check_assignments(told.values())
        assert assigned(room) == {}

    within(hardware_cloud(1), work, **FILTERS)


def test_a_refused_claim_gives_back_what_the_scheduler_remembers(within: Within) -> None:
    async def meddle(request: httpx.Request) -> Answer:
        if request.method == "POST":
            error = {"status": 409, "code": "placement.undefined_code", "detail": "no room"}
            return httpx.Response(409, json={"errors": [error]})
        return None

    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(HostRequest(PINNED, tuple(INSTANCES[:1]), 0))
        assert len(room.scheduler.table.outstanding) == 0

    within(hardware_cloud(2), work, meddle, **FILTERS)
