"""Claims over HTTP that replace what instances hold, and swaps by callers that are late."""

import msgspec
import pytest

from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.errors import StaleClaim
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import flat, spec
from support.wire import INSTANCES, Room, Within

ONE, TWO = INSTANCES[:2]


async def again(room: Room, generations: dict[str, int], **more: object) -> list[int | None]:
    """The generations of the instances' claims after another decision for them."""
    found = await room.scheduler.select_destinations(
        HostRequest(spec(**more), (ONE, TWO), min_count=1, generations=generations)
    )
    return [each.selected.generation for each in found]


async def present(room: Room, instance: str) -> int | None:
    held = await room.placement.allocations_of(instance)
    return None if held is None else held.consumer.generation


def test_claims_are_replaced_at_their_generations(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1)
        assert placed.selected.generation == 1
        assert await again(room, {ONE: 1}) == [2, 1]
        assert [await present(room, each) for each in (ONE, TWO)] == [2, 1]
        with pytest.raises(ConcurrentUpdate):
            await again(room, {ONE: 1, TWO: 1})
        assert [await present(room, each) for each in (ONE, TWO)] == [2, 1]
        assert room.kept.runs[-2].generations == {ONE: 1}

    within(flat(3), work)


def test_a_claim_that_was_replaced_is_never_freed(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place(1, vcpus=8)
        with pytest.raises(Exception, match="fit"):
            await room.scheduler.select_destinations(
                HostRequest(spec(vcpus=8), tuple(INSTANCES[:4]), generations={ONE: 1})
            )
        assert list(room.held()) == [ONE]

    within(flat(3), work)


def test_a_late_caller_does_not_move_a_claim_that_others_have_moved(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        elsewhere = ConsumerWrite(
            consumer=ONE,
            allocations={placed.alternates[1].node: {"VCPU": 1}},
            project_id="p",
            user_id="u",
            generation=1,
        )
        await room.placement.write_allocations([elsewhere])
        back = msgspec.structs.replace(elsewhere, allocations=placed.selected.allocations, generation=2)
        await room.placement.write_allocations([back])
        with pytest.raises(StaleClaim, match="generation 3, not 1"):
            await room.scheduler.use_alternate(
                AlternateRequest(
                    spec(),
                    ONE,
                    placed.selected,
                    placed.alternates,
                    reason="no IP",
                    run=placed.run,
                    request_id="req",
                )
            )
        assert room.held() == {ONE: placed.selected.allocations}

    within(flat(3), work)
