"""Several instances over HTTP are claimed in one write; nothing is left over when that fails."""

import asyncio

import httpx
import pytest

from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import NoValidHost
from roost.scheduler.errors import PlacementUnavailable
from support.clouds import flat, holding, uuid_of
from support.wire import INSTANCES, Answer, Room, Within, claims_of


class FasterWriter:
    """Takes all of host1 just before several claims are written."""

    room: Room

    async def __call__(self, request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            taken = holding(uuid_of(0xBEEF), {uuid_of(1): {"VCPU": 8}})
            await self.room.ledger.execute(WriteAllocations((taken,)))
        return None


def test_one_write_claims_all(within: Within) -> None:
    async def work(room: Room) -> None:
        placed = await room.place(4)
        assert [one.selected.host for one in placed] == ["host0", "host1", "host0", "host1"]
        assert set(room.held()) == set(INSTANCES)
        assert room.wire.asked.count("POST /allocations") == 1
        assert [result for _, result, _ in room.tries()] == ["pending"] * 4

    within(flat(2), work)


def test_too_few_hosts_are_known_before_anything_is_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match="only 2 of 3 instances fit"):
            await room.place(3, vcpus=8)
        assert room.wire.asked == ["GET /allocation_candidates"]
        assert room.held() == {}
        placed = await room.place(3, vcpus=8, min_count=2)
        assert set(room.held()) == {one.instance for one in placed} == set(INSTANCES[:2])

    within(flat(2), work, explain_seconds=0.0)


@pytest.mark.parametrize(("asked", "min_count"), [(2, 2), (3, 2)])
def test_if_others_were_faster_the_instances_are_placed_one_by_one(
    within: Within, asked: int, min_count: int
) -> None:
    faster = FasterWriter()

    async def work(room: Room) -> None:
        faster.room = room
        placed = await room.place(asked, vcpus=8, min_count=min_count)
        assert [one.selected.host for one in placed] == ["host0", "host2"]
        assert set(room.held()) == {one.instance for one in placed}
        # What was placed before counts on no node any more.
        assert room.scheduler.table.num_instances[:3].tolist() == [1, 0, 1]

    within(flat(3), work, faster)


def test_nothing_stays_if_too_few_are_placed_one_by_one(within: Within) -> None:
    faster = FasterWriter()

    async def work(room: Room) -> None:
        faster.room = room
        with pytest.raises(NoValidHost, match="only 2 of 3 instances fit"):
            await room.place(3, vcpus=8)
        assert room.held() == {}
        assert room.scheduler.table.num_instances[:3].tolist() == [0, 0, 0]

    within(flat(3), work, faster)


def test_instance_that_holds_something_ends_the_run_and_no_other_is_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        mine = {uuid_of(0): {"VCPU": 1}}
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[1], mine),)))
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await room.place(3)
        assert room.held() == {INSTANCES[1]: mine}
        assert room.wire.asked.count("POST /allocations") == 1

    within(flat(2), work)


def test_all_are_freed_if_the_answer_is_lost(within: Within) -> None:
    rooms: list[Room] = []

    async def lose(request: httpx.Request) -> Answer:
        if claims_of(request):
            await rooms[0].wire.service.handle_async_request(request)
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        with pytest.raises(PlacementUnavailable, match="ReadTimeout"):
            await room.place(3)
        assert room.held() == {}

    within(flat(2), work, lose)


def test_all_are_freed_if_the_run_is_cancelled_during_the_write(within: Within) -> None:
    rooms: list[Room] = []
    written = asyncio.Event()

    async def hang(request: httpx.Request) -> Answer:
        if claims_of(request):
            await rooms[0].wire.service.handle_async_request(request)
            written.set()
            await asyncio.sleep(60)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        task = asyncio.create_task(room.place(3))
        await written.wait()
        assert len(room.held()) == 3
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.held() == {}

    within(flat(2), work, hang)
