"""Server groups over HTTP: by Roost's own service, and by the same service as one that knows no groups."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from roost.model.allocation import GroupClaim
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, Kept, filled, flat, over_http, spec, uuid_of
from support.wire import INSTANCES, Answer, Room, Within

GROUP = "group"
OTHERS = [uuid_of(0x90 + number) for number in range(4)]


async def everybody(group: str) -> Sequence[str]:
    """All that may be members, whether they have a claim or not."""
    assert group == GROUP
    return (*INSTANCES, *OTHERS)


async def member(room: Room, number: int, host: int) -> None:
    """Somebody else's claim of a member, which a foreign service does not know to be one."""
    write = ConsumerWrite(
        consumer=OTHERS[number],
        allocations={uuid_of(host): {"VCPU": 1}},
        project_id="p",
        user_id="u",
        generation=None,
        group=GroupClaim(GROUP, "soft-affinity"),
    )
    await room.ledger.execute(WriteAllocations((write,)))


def hosts_of(room: Room) -> list[str]:
    return sorted(provider for held in room.held().values() for provider in held)


def test_foreign_service_spreads_members_that_it_does_not_know(within: Within) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, host=0)
        await room.place(2, group=ServerGroup(GROUP, "anti-affinity"))
        assert hosts_of(room) == [uuid_of(1), uuid_of(2)]
        assert "POST /v1/allocations" not in room.wire.asked

    within(flat(3), work, members=everybody)


@pytest.mark.parametrize("filters", [("ComputeFilter",), ("ServerGroupAffinityFilter",)])
def test_foreign_service_keeps_affine_members_together(within: Within, filters: tuple[str, ...]) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, host=2)
        await room.place(2, group=ServerGroup(GROUP, "affinity"))
        assert hosts_of(room) == [uuid_of(2)] * 2

    within(flat(4), work, members=everybody, filters=filters)


@pytest.mark.parametrize(
    ("other", "ends_on"), [(OTHERS[0], 1), (uuid_of(0xFF), 0)], ids=["lower uuid", "higher uuid"]
)
def test_member_that_claims_at_the_same_moment(within: Within, other: str, ends_on: int) -> None:
    """It claims the same host after the first look. The higher of the two frees its claim."""
    rooms: list[Room] = []
    write = ConsumerWrite(
        consumer=other, allocations={uuid_of(0): {"VCPU": 1}}, project_id="p", user_id="u", generation=None
    )

    async def both(group: str) -> Sequence[str]:
        return (*INSTANCES, other)

    async def claim_too(request: httpx.Request) -> Answer:
        if request.method == "POST" and rooms:
            await rooms.pop().ledger.execute(WriteAllocations((write,)))
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        if ends_on:
            await room.place(1, group=ServerGroup(GROUP, "anti-affinity"))
        else:
            room.waits_end.clear()
            placing = asyncio.create_task(room.place(1, group=ServerGroup(GROUP, "anti-affinity")))
            while not room.waited:
                await asyncio.sleep(0)
            await room.placement.delete_allocations([other])
            room.waits_end.set()
            await placing
        assert hosts_of(room) == [uuid_of(ends_on)]

    within(flat(3), work, claim_too, members=both)


def test_member_that_stays_is_not_waited_for_without_end(within: Within) -> None:
    """A member of a higher uuid that had its second look before does not leave."""
    higher = uuid_of(0xFF)
    write = ConsumerWrite(
        consumer=higher, allocations={uuid_of(0): {"VCPU": 1}}, project_id="p", user_id="u", generation=None
    )

    async def both(group: str) -> Sequence[str]:
        return (*INSTANCES, higher)

    async def work(room: Room) -> None:
        await room.ledger.execute(WriteAllocations((write,)))
        with pytest.raises(NoValidHost, match="host0, has 1 members of the server group"):
            await room.place(1, group=ServerGroup(GROUP, "anti-affinity"))
        assert room.waited == pytest.approx(2.0)
        assert room.held() == {}

    within(flat(1), work, members=both, filters=("ComputeFilter",))


# A service that judges the condition in the claim


@pytest.mark.parametrize(
    ("changes", "claims", "ends_on"), [(1, 2, 1), (3, 4, 3), (4, 4, None)], ids=["once", "thrice", "always"]
)
def test_affine_run_begins_anew_when_the_members_are_on_another_host(
    tmp_path: Path, changes: int, claims: int, ends_on: int | None
) -> None:
    """It claims on the one host that it may use by then, and does not try the others one after the other."""
    cloud = flat(40)
    node, instance = uuid_of, INSTANCES[0]
    left = list(range(1, changes + 1))
    made: list[str] = []

    async def use() -> None:
        async with filled(tmp_path / "roost.db", cloud) as ledger, over_http(ledger) as placement:
            candidates, write_allocations = placement.candidates, placement.write_allocations

            async def then_members_move(*asked: object) -> object:
                answer = await candidates(*asked)  # type: ignore[arg-type]
                if left:
                    write = ConsumerWrite(
                        consumer=OTHERS[0],
                        allocations={node(left.pop(0)): {"VCPU": 1}},
                        project_id="p",
                        user_id="u",
                        group=GroupClaim(GROUP, "soft-affinity"),
                    )
                    await ledger.execute(WriteAllocations((write,)))
                return answer

            async def counted(writes: Sequence[ConsumerWrite]) -> None:
                made.extend(each.consumer for each in writes)
                await write_allocations(writes)

            placement.candidates = then_members_move  # type: ignore[method-assign,assignment]
            placement.write_allocations = counted  # type: ignore[method-assign]
            scheduler = Scheduler(HttpGateway(placement, HostPools(cloud.table())), Kept(), clock=lambda: NOW)
            asked = scheduler.select_destinations(
                HostRequest(spec(group=ServerGroup(GROUP, "affinity")), (instance,))
            )
            if ends_on is None:
                with pytest.raises(NoValidHost, match="refuses consumer"):
                    await asked
            else:
                [placed] = await asked
                assert placed.selected.node == node(ends_on)
            assert made == [instance] * claims

    asyncio.run(use())
